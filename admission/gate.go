package admission

import (
	"cmp"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// Workers look after pods that have been admitted; podworkers.Workers does. The methods are those of syncloop.Workers.
type Workers interface {
	Update(pod *corev1.Pod)
	Remove(pod types.UID)
	Sync(pod types.UID)
	Orphan(pod *podmill.RuntimePod)
	Leftover(pod types.UID)
	Known(pod types.UID) bool
}

// Surroundings are what a gate asks and tells. The funcs return at once.
type Surroundings struct {
	// Node is what pods are measured against, now.
	Node func() Node
	// Status is the newest status of a pod, if it has one: a pod that is over does not count any more.
	Status func(pod types.UID) (corev1.PodStatus, bool)
	// Reject is told once of each pod that is rejected: its status is Failed, with the reason and the message, and people are told.
	Reject func(pod *corev1.Pod, rejection *Rejection)
	// Preempt is told that an admitted pod has to end, so that a critical one can run. Without it nobody's pod ends for another's sake.
	Preempt func(victim *corev1.Pod)
	// Retry is told that a pod was given the resources that were deferred, and has to be synced. It may be called concurrently.
	Retry func(pod types.UID)
	// Finish is told when a rejected pod is to be deleted, or is not wanted any more: nothing of it has to be cleaned up.
	Finish func(pod *corev1.Pod)
}

// Gate passes on to workers the pods that a node can run. To whoever tells it what is wanted it is the workers.
type Gate struct {
	Workers
	around   Surroundings
	rejected map[types.UID]*corev1.Pod

	mu       sync.Mutex
	admitted map[types.UID]*guest
	deferred []*corev1.Pod // as they want to be
}

// guest is a pod that was admitted.
type guest struct {
	pod     *corev1.Pod // with the resources that it was allocated
	leaving bool        // it is not wanted any more
	yields  bool        // it ends for another's sake, and counts no more
}

// NewGate returns a gate before workers.
func NewGate(workers Workers, around Surroundings) *Gate {
	return &Gate{Workers: workers, around: around, admitted: map[types.UID]*guest{}, rejected: map[types.UID]*corev1.Pod{}}
}

// Update passes a pod on if it was admitted before or can be now.
func (g *Gate) Update(pod *corev1.Pod) {
	if _, ok := g.rejected[pod.UID]; ok {
		g.rejected[pod.UID] = pod
		if pod.DeletionTimestamp != nil {
			g.around.Finish(pod)
		}
		return
	}
	victims, rejection := g.admit(pod)
	for _, victim := range victims {
		g.around.Preempt(victim)
	}
	if rejection != nil {
		g.rejected[pod.UID] = pod
		g.around.Reject(pod, rejection)
		return
	}
	g.Workers.Update(pod)
}

// admit admits a pod, or returns why it is rejected, and who has to end for it. A pod that was admitted before stays so, with what it was allocated; one that ends, is
// over or runs already has nothing left to be admitted to.
func (g *Gate) admit(pod *corev1.Pod) (victims []*corev1.Pod, rejection *Rejection) {
	node := g.around.Node()
	g.mu.Lock()
	defer g.mu.Unlock()
	known := g.admitted[pod.UID]
	switch {
	case known != nil:
		g.deferred = slices.DeleteFunc(g.deferred, func(o *corev1.Pod) bool { return o.UID == pod.UID && keeping(pod, o) != pod }) // it wants something else now
		g.admitted[pod.UID] = &guest{pod: keeping(pod, known.pod), yields: known.yields && !known.leaving}
		return nil, nil
	case over(pod) || pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodRunning:
		g.admitted[pod.UID] = &guest{pod: allocated(pod)}
		return nil, nil
	case g.around.Preempt == nil:
		rejection = Check(&node, g.counted(), pod)
	default:
		victims, rejection = Preempt(&node, g.counted(), pod)
	}
	for _, victim := range victims {
		g.admitted[victim.UID].yields = true
	}
	if rejection == nil {
		g.admitted[pod.UID] = &guest{pod: pod}
	}
	return victims, rejection
}

// counted returns the pods that take something of the node: admitted, not over, and if they are not wanted any more, not finished yet.
func (g *Gate) counted() []*corev1.Pod {
	others := make([]*corev1.Pod, 0, len(g.admitted))
	for uid, guest := range g.admitted {
		if guest.leaving && !g.Known(uid) {
			delete(g.admitted, uid)
			continue
		}
		status, ok := g.around.Status(uid)
		if !guest.yields && (!ok || status.Phase != corev1.PodSucceeded && status.Phase != corev1.PodFailed) {
			others = append(others, guest.pod)
		}
	}
	slices.SortFunc(others, func(a, b *corev1.Pod) int { return cmp.Compare(a.UID, b.UID) })
	return others
}

// Remove passes on that a pod is not wanted any more. It counts until the workers have finished with it.
func (g *Gate) Remove(pod types.UID) {
	if rejected, ok := g.rejected[pod]; ok {
		delete(g.rejected, pod)
		g.around.Finish(rejected)
		return
	}
	g.mu.Lock()
	if guest := g.admitted[pod]; guest != nil {
		guest.leaving = true
	}
	g.mu.Unlock()
	g.Workers.Remove(pod)
}

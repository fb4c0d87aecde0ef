package admission

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill/internal/qos"
	"github.com/podmill/podmill/internal/resources"
)

// CheckResize returns why a pod that runs cannot have the CPU and memory that it asks for beside others, nil if it can (KEP-1287). The reason is
// [corev1.PodReasonInfeasible] where it is more than the whole node has, and [corev1.PodReasonDeferred] where others have it now.
func CheckResize(node *Node, others []*corev1.Pod, pod *corev1.Pod) *Rejection {
	if s := shortageOf(shortages(node, nil, pod), corev1.ResourceMemory, corev1.ResourceCPU); s != nil {
		return &Rejection{corev1.PodReasonInfeasible, fmt.Sprintf(
			"Node didn't have enough capacity: %s, requested: %d, capacity: %d", s.name, s.amount(s.requested), s.amount(s.capacity))}
	}
	if s := shortageOf(shortages(node, beside(others, pod), pod), corev1.ResourceCPU, corev1.ResourceMemory); s != nil {
		return &Rejection{corev1.PodReasonDeferred, s.rejection().Message}
	}
	return nil
}

// shortageOf returns the first of these resources of which there is too little, nil if there is enough of them.
func shortageOf(lacking []shortage, names ...corev1.ResourceName) *shortage {
	for _, name := range names {
		if at := slices.IndexFunc(lacking, func(s shortage) bool { return s.name == name }); at >= 0 {
			return &lacking[at]
		}
	}
	return nil
}

// Resize gives a pod that was admitted, and has the resources of has, those of wants if there is room, or returns why not, as [CheckResize] does. One that is deferred
// is given them as soon as there is room; of several the one of the highest priority comes first, then of the best class of service, then the one that has waited longest.
// [Surroundings].Retry is told, and Resize asked again.
func (g *Gate) Resize(has, wants *corev1.Pod) (reason, message string) {
	node := g.around.Node()
	g.mu.Lock()
	r := CheckResize(&node, g.counted(), wants)
	if guest := g.admitted[wants.UID]; guest != nil {
		guest.pod = has
		if r == nil {
			guest.pod = wants
		}
	}
	at := slices.IndexFunc(g.deferred, func(o *corev1.Pod) bool { return o.UID == wants.UID })
	switch waits := r != nil && r.Reason == corev1.PodReasonDeferred; {
	case waits && at >= 0:
		g.deferred[at] = wants
	case waits:
		g.deferred = append(g.deferred, wants)
	case at >= 0:
		g.deferred = slices.Delete(g.deferred, at, at+1)
	}
	g.mu.Unlock()
	if r != nil {
		return r.Reason, r.Message
	}
	g.Freed() // it may have been for less
	return "", ""
}

// Freed says that a pod may have given back what it had of the node.
func (g *Gate) Freed() {
	node := g.around.Node()
	var given []types.UID
	g.mu.Lock()
	slices.SortStableFunc(g.deferred, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(priority(b), priority(a)), cmp.Compare(class(a), class(b)))
	})
	g.deferred = slices.DeleteFunc(g.deferred, func(pod *corev1.Pod) bool {
		guest := g.admitted[pod.UID]
		if guest == nil || guest.leaving || guest.yields {
			return true
		}
		if CheckResize(&node, g.counted(), pod) != nil {
			return false
		}
		guest.pod = pod
		given = append(given, pod.UID)
		return true
	})
	g.mu.Unlock()
	for _, uid := range given {
		g.around.Retry(uid)
	}
}

func priority(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

// class ranks the classes of service, the best first.
func class(pod *corev1.Pod) int {
	return slices.Index([]corev1.PodQOSClass{corev1.PodQOSGuaranteed, corev1.PodQOSBurstable, corev1.PodQOSBestEffort}, qos.Class(pod))
}

// allocated returns the pod with what it has, as its status says, where its spec asks for something else meanwhile.
func allocated(pod *corev1.Pod) *corev1.Pod {
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	return resources.Resized(pod, func(c *corev1.Container) (r corev1.ResourceRequirements, ok bool) {
		at := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == c.Name })
		if at < 0 || statuses[at].AllocatedResources == nil {
			return r, false
		}
		return corev1.ResourceRequirements{Requests: statuses[at].AllocatedResources, Limits: c.Resources.Limits}, true
	})
}

// keeping returns a newer version of a pod with what it was allocated.
func keeping(pod, admitted *corev1.Pod) *corev1.Pod {
	return resources.Resized(pod, func(c *corev1.Container) (r corev1.ResourceRequirements, ok bool) {
		if had := resources.Container(admitted, c.Name); had != nil {
			return had.Resources, true
		}
		return r, false
	})
}

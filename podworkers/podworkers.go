package podworkers

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// Why a sync was cancelled, as [context.Cause] of its context tells. When Run's context ends it is the cause of that.
var (
	// ErrTerminating cancels a SyncPod: the pod has to end.
	ErrTerminating = errors.New("the pod has to end")
	// ErrHastened cancels a SyncTerminatingPod: it is called again with a [podmill.Termination] that has changed, in most cases a
	// nearer deadline.
	ErrHastened = errors.New("the termination has changed")
)

// Syncer brings a pod to where it should be. Calls for one UID come one after another; calls for different UIDs come
// concurrently, and only while Run runs.
//
// Every method is idempotent, works from what it finds and not from what it did last, and returns soon after ctx has ended:
// until it has, nothing else can happen to its pod. An error means that the call is repeated after a back-off; one that is
// returned because ctx was cancelled counts for nothing. Pods are shared and read-only.
type Syncer interface {
	// SyncPod makes the pod run as its spec says. Where end is not nil it has to end for a reason of its own and goes on to terminate: the zero
	// value says that its work is done, a Reason why it ends before that, such as that its deadline has passed. When ctx ends for [ErrTerminating], no container may be started any more; the results are ignored.
	SyncPod(ctx context.Context, pod *corev1.Pod) (end *podmill.Kill, err error)
	// SyncTerminatingPod stops the pod's containers and returns nil when none runs any more; from then on none may be started. A
	// call is cancelled and made again when the deadline comes nearer. It is called for a pod that was never started as well, for
	// an agent that ran before may have left something.
	SyncTerminatingPod(ctx context.Context, pod *corev1.Pod, t podmill.Termination) error
	// SyncTerminatingRuntimePod does the same for a pod of which only the runtime knows. The grace period is the syncer's
	// business: the containers' annotations may tell it.
	SyncTerminatingRuntimePod(ctx context.Context, pod *podmill.RuntimePod) error
	// SyncTerminatedPod cleans up: volumes, cgroups, directories, the last status. No container runs, and none will. If the pod
	// is deleted only after it has finished, it is called once more with the pod that says so.
	SyncTerminatedPod(ctx context.Context, pod *corev1.Pod) error
}

// Workers syncs pods: each by itself, one sync at a time. See the package documentation. Its methods may be called
// concurrently, before, while and after Run runs, and from within a Syncer; none of them waits for a sync.
type Workers struct {
	syncer Syncer
	opts   options
	wake   chan struct{} // holds one token when the schedule has a new first

	mu       sync.Mutex
	pods     map[types.UID]*incarnation
	lines    lines
	arrivals uint64
	schedule schedule
	crew     *crew // nil unless Run runs
}

// New returns workers that call syncer once they run.
func New(syncer Syncer, opts ...Option) *Workers {
	return &Workers{
		syncer: syncer, opts: newOptions(opts), wake: make(chan struct{}, 1),
		pods: map[types.UID]*incarnation{}, lines: lines{},
	}
}

// Update says that a pod is wanted, and as it is now. A pod with a DeletionTimestamp is wanted no more: it ends, with its
// DeletionGracePeriodSeconds as the grace. A pod that is ending takes the newer spec along, and ends; one that was removed and is wanted
// again starts afresh when it has finished, and so does one that an orphan stands in the way of. A pod without a UID is ignored.
func (w *Workers) Update(pod *corev1.Pod) {
	if pod == nil || pod.UID == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	inc := w.pods[pod.UID]
	switch {
	case inc == nil:
		w.arrive(configured(pod, w.arrival()))
		return
	case !inc.removed:
		inc.update(pod)
	case inc.next == nil:
		inc.next = configured(pod, w.arrival())
	default:
		inc.next.update(pod)
	}
	if pod.DeletionTimestamp != nil {
		w.kill(inc, deletion(pod), deleted)
		return
	}
	w.settle(inc)
}

// Sync says that something happened which a pod should be looked at for. What happens while a sync is in flight leads to one
// more. After a failure it shortens the back-off to its first step, but not to nothing: what a failing sync does is in itself
// something that happens.
func (w *Workers) Sync(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if inc := w.pods[uid]; inc != nil {
		inc.hint()
		w.settle(inc)
	}
}

// Kill says that a pod has to end, whatever its source wants. It does not start again unless it is removed and then updated.
// Of several kills the shortest grace counts, and the first reason; a grace that is longer than the pod's own does not, for whoever evicts a pod may
// hurry it, and has no more to give. The channel is closed when no container runs any more; at
// once, where the pod is not known. For that Run has to run.
func (w *Workers) Kill(uid types.UID, k podmill.Kill) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	inc := w.pods[uid]
	if inc != nil {
		w.kill(inc, atMostOwn(inc.pod, k), killed)
	}
	if inc == nil || inc.state >= Terminated {
		stopped := make(chan struct{})
		close(stopped)
		return stopped
	}
	if inc.stopped == nil {
		inc.stopped = make(chan struct{})
	}
	return inc.stopped
}

// Remove says that nobody wants a pod any more: it ends with its own grace period and is then forgotten.
func (w *Workers) Remove(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if inc := w.pods[uid]; inc != nil {
		inc.removed, inc.next = true, nil
		w.kill(inc, podmill.Kill{}, removed)
	}
}

// Orphan says that the runtime holds a pod that nobody wants: it is torn down and forgotten. Where a pod of that UID is known it does
// nothing, but for taking a newer observation of an orphan. A static orphan (its sandbox's annotations tell) has its name, so that a
// static pod of that name which comes after it waits.
func (w *Workers) Orphan(seen *podmill.RuntimePod) {
	if seen == nil || seen.UID == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch inc := w.pods[seen.UID]; {
	case inc == nil:
		w.arrive(orphaned(seen, w.arrival()))
	case inc.pod == nil:
		inc.seen = seen
	}
}

// Leftover says that the runtime holds something of a pod. One that has finished is cleaned up once more, in the state that it is in: a call
// that nobody waited for any more may have taken effect since. Any other has a sync to come, and is left alone.
func (w *Workers) Leftover(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if inc := w.pods[uid]; inc != nil {
		inc.leftover()
		w.settle(inc)
	}
}

// Known reports whether the workers know a pod: it is wanted, or it was and has not finished, or it is an orphan on its
// way out. What is known is not housekeeping's to clean up.
func (w *Workers) Known(uid types.UID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pods[uid] != nil
}

func (w *Workers) arrival() uint64 {
	w.arrivals++
	return w.arrivals
}

// arrive makes a pod known. It starts if nothing is in its way.
func (w *Workers) arrive(inc *incarnation) {
	inc.since = time.Now()
	w.pods[inc.ref.UID] = inc
	if w.lines.enter(inc) {
		w.step(inc, Waiting, inc.admit())
	}
}

// kill ends a pod, and the one that waits to follow it.
func (w *Workers) kill(inc *incarnation, k podmill.Kill, by why) {
	now := time.Now()
	if inc.next != nil {
		inc.next.kill(k, by, now)
	}
	from := inc.state
	e := inc.kill(k, by, now)
	if inc.state == Waiting {
		w.lines.leave(inc)
		e = inc.admit()
	}
	w.step(inc, from, e)
}

// step carries out what a step of a pod's life asks for.
func (w *Workers) step(inc *incarnation, from State, e effects) {
	if e.moved {
		inc.since = time.Now()
		w.opts.observer.stateChanged(inc.ref, from, inc.state)
		if inc.stopped != nil && inc.state >= Terminated {
			close(inc.stopped)
			inc.stopped = nil
		}
	}
	if e.cancel != nil { // after it was told why: the end of that sync is told by another goroutine
		inc.cancel(e.cancel)
	}
	if inc.state == Finished && !inc.running {
		w.finish(inc)
	}
	w.settle(inc)
}

// finish gives way to those that wait for a finished pod: the next of its UID, once the pod itself is not wanted any more, and the
// next of its name. The former is in line for the name before it is given away.
func (w *Workers) finish(inc *incarnation) {
	var next *incarnation
	free := false
	if inc.removed {
		next = inc.next
		w.forget(inc)
	}
	if next != nil {
		next.since = time.Now()
		w.pods[next.ref.UID] = next
		free = w.lines.enter(next)
	}
	if heir := w.lines.leave(inc); heir != nil {
		w.step(heir, Waiting, heir.admit())
	}
	if free {
		w.step(next, Waiting, next.admit())
	}
}

func (w *Workers) forget(inc *incarnation) {
	delete(w.pods, inc.ref.UID)
	w.schedule.drop(inc)
	inc.queued = false
}

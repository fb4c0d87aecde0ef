package podworkers

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// The life of a pod. This file knows no goroutine, no lock and no clock: a step notes what happened and says what it asks
// of the world, and due says when the next sync may begin. The shell around it (run.go) carries that out.
//
//	         nothing is in its way       it has to end        no container runs        all is cleaned up
//	Waiting ----------------------> Syncing -------> Terminating ---------> Terminated ---------> Finished
//	   |                                                ^
//	   +------- it has to end, and never started -------+
//
// There is no arrow back. A pod that has to end will end, whatever its source says later; a pod that is asked for again is
// another life, which waits for this one to finish.
//
// While it is Syncing, a pod is synced when something is new (a spec), when something happened (a hint), and now and then in
// any case (a resync). While it is Terminating, one sync runs until no container does; while it is Terminated, one sync cleans
// up. A sync that fails is repeated, later and later.
//
// Only one sync is in flight at a time, and what happens meanwhile is kept as facts and not as a queue: the newest spec, that
// there was a hint, how the pod has to end. So nothing that happens often takes space, and nothing that matters is overwritten:
//
//   - An end is never taken back. It cancels a sync that may still be starting containers, whose outcome is then ignored.
//   - The grace period only shrinks. Until the stop begins, the shortest that was asked for counts; from then on it is an absolute
//     deadline, and only a nearer one replaces it. That cancels the stop in flight, which is called again with the new deadline.
//     The grace starts to run when the stop begins, and not when it was asked for: time that was lost with a sync that did not give up,
//     or with waiting for a free place, is not taken from the containers.
//   - A pod that is deleted after it has ended by itself was not reported as deleted by anyone. It is cleaned up once more, in
//     the state that it is in, so that the last report can say so. So is one of which something has come up in the runtime.
type life struct {
	pod     *corev1.Pod          // the newest spec; nil where the pod is known only from the runtime
	seen    *podmill.RuntimePod  // what the runtime shows of such a pod
	stop    *podmill.Termination // how it ends, nil until it has to; the deadline is zero until the stop begins
	err     error                // why the newest sync failed, nil if it did not
	wake    time.Time            // when the next sync is due if nothing happens: a retry or a resync
	soonest time.Time            // a sync that failed is not repeated for a mere hint before this

	failures  int32 // in a row
	state     State
	why       why
	removed   bool // nobody wants the pod: it is forgotten when it has finished
	running   bool // a sync is in flight
	cancelled bool // the sync in flight was told to give up, so its error says nothing
	fresh     bool // there is something that no sync has seen: the next one does not wait
	hinted    bool // something happened: look again soon
}

// why says who asked first for the end of a pod.
type why uint8

const (
	lives     why = iota // nobody did
	killed               // Kill
	deleted              // a spec with a DeletionTimestamp
	removed              // Remove
	ended                // SyncPod said that the pod's work is done
	wasEnded             // the pod was Succeeded or Failed when it was first seen
	ownerless            // the pod is known only from the runtime
)

// effects is what a step asks of the world. The zero value asks for nothing.
type effects struct {
	moved  bool  // the state is another one
	cancel error // cancel the sync in flight, and this is why
}

// call is a sync to be carried out, and all that it needs.
type call struct {
	during State
	pod    *corev1.Pod
	seen   *podmill.RuntimePod
	stop   podmill.Termination
}

// newLife is a pod that a source asks for. What has to end before it began does end, but in the usual way: an agent that was
// restarted does not know what it may have started in its last life.
func newLife(pod *corev1.Pod) life {
	l := life{pod: pod}
	if phase := pod.Status.Phase; phase == corev1.PodSucceeded || phase == corev1.PodFailed {
		l.kill(podmill.Kill{}, wasEnded, time.Time{})
	}
	if pod.DeletionTimestamp != nil {
		l.kill(deletion(pod), deleted, time.Time{})
	}
	return l
}

// newOrphan is a pod that only the runtime knows. Nobody wants it.
func newOrphan(seen *podmill.RuntimePod) life {
	return life{seen: seen, stop: &podmill.Termination{}, why: ownerless, removed: true}
}

// admit says that nothing is in the pod's way any more.
func (l *life) admit() effects {
	if l.stop != nil {
		return l.move(Terminating)
	}
	return l.move(Syncing)
}

// update takes a newer spec. A DeletionTimestamp in it is a kill besides, and that is the caller's to say.
func (l *life) update(pod *corev1.Pod) {
	nowDeleted := pod.DeletionTimestamp != nil && l.pod.DeletionTimestamp == nil
	l.pod = pod
	if l.state == Syncing || l.state >= Terminated && nowDeleted {
		l.fresh = true
	}
}

// hint says that something happened to the pod that a sync should look at.
func (l *life) hint() { l.hinted = true }

// leftover says that something is left of a pod.
func (l *life) leftover() { l.fresh = l.fresh || l.state == Finished }

// kill says that the pod has to end.
func (l *life) kill(k podmill.Kill, by why, now time.Time) effects {
	switch {
	case l.state >= Terminated || l.pod == nil:
		return effects{} // nothing runs, or how it ends is the syncer's business
	case l.stop != nil:
		return l.hasten(k, now)
	}
	l.why = by
	l.stop = &podmill.Termination{GracePeriodSeconds: grace(l.pod, k), Reason: k.Reason, Message: k.Message}
	if l.state == Waiting {
		return effects{}
	}
	e := l.move(Terminating)
	if l.running {
		l.cancelled, e.cancel = true, ErrTerminating
	}
	return e
}

// hasten is a further kill of a pod that has to end already. It can bring the deadline nearer and say why the pod ends, if
// nobody has; but a pod that has ended by itself ended for no other reason.
func (l *life) hasten(k podmill.Kill, now time.Time) effects {
	next, g := *l.stop, grace(l.pod, k)
	switch deadline := now.Add(seconds(g)); {
	case next.Deadline.IsZero():
		next.GracePeriodSeconds = min(next.GracePeriodSeconds, g)
	case deadline.Before(next.Deadline):
		next.Deadline, next.GracePeriodSeconds = deadline, g
	}
	if next.Reason == "" && l.why != ended && l.why != wasEnded {
		next.Reason, next.Message = k.Reason, k.Message
	}
	if next == *l.stop {
		return effects{}
	}
	*l.stop, l.fresh = next, true
	if l.running {
		l.cancelled = true
		return effects{cancel: ErrHastened}
	}
	return effects{}
}

// begin starts a sync. It is called only where none is in flight and one is due.
func (l *life) begin(now time.Time) call {
	l.running, l.fresh, l.hinted = true, false, false
	c := call{during: l.state, pod: l.pod, seen: l.seen}
	if l.state == Terminating {
		if l.stop.Deadline.IsZero() && l.pod != nil {
			l.stop.Deadline = now.Add(seconds(l.stop.GracePeriodSeconds))
		}
		c.stop = *l.stop
	}
	return c
}

// abort says that the sync in flight is cancelled for a reason that has nothing to do with the pod.
func (l *life) abort() { l.cancelled = true }

// end takes the outcome of the sync that began in the state during; own is the end that the pod comes to by itself.
func (l *life) end(during State, own *podmill.Kill, err error, now time.Time, p pace) effects {
	cancelled := l.cancelled
	l.running, l.cancelled = false, false
	switch {
	case during != l.state:
		return effects{} // the pod has moved on, and move has seen to what comes next
	case err != nil && cancelled:
		l.fresh = true
		return effects{}
	case err != nil:
		l.failures, l.err = l.failures+1, err
		l.wake, l.soonest = now.Add(p.retry(l.failures)), now.Add(p.retry(1))
		return effects{}
	}
	l.failures, l.err = 0, nil
	switch {
	case l.state == Syncing && own != nil:
		return l.kill(*own, ended, now)
	case l.state == Syncing:
		l.wake = p.next(now)
	case l.state == Terminating && l.pod == nil:
		return l.move(Finished) // whose files are whose, only housekeeping can tell
	case l.state == Terminating:
		return l.move(Terminated)
	case l.state == Terminated && !l.fresh:
		return l.move(Finished)
	}
	return effects{}
}

// move enters a state, which owes nothing to the troubles of the one before.
func (l *life) move(to State) effects {
	l.state = to
	l.failures, l.err = 0, nil
	l.fresh, l.hinted = to != Finished, false
	return effects{moved: true}
}

// due says when the next sync may begin if none is in flight: at a zero time at once, and not ok means not before
// something happens.
func (l *life) due() (at time.Time, ok bool) {
	switch {
	case l.state == Waiting || l.state == Finished && l.removed:
		return time.Time{}, false
	case l.fresh:
		return time.Time{}, true
	case l.failures > 0 && l.hinted:
		return l.soonest, true
	case l.failures > 0:
		return l.wake, true
	case l.state == Finished:
		return time.Time{}, false
	case l.hinted:
		return time.Time{}, true
	}
	return l.wake, !l.wake.IsZero()
}

// deletion is the kill that a DeletionTimestamp means. The timestamp itself is not looked at: it is another machine's clock.
func deletion(pod *corev1.Pod) podmill.Kill {
	return podmill.Kill{GracePeriodSeconds: pod.DeletionGracePeriodSeconds}
}

// grace is how long a kill gives a pod, in seconds. As in the API server, a deletion with less than nothing has one second; what would not fit
// into a duration is as good as for ever.
func grace(pod *corev1.Pod, k podmill.Kill) int64 {
	g := int64(corev1.DefaultTerminationGracePeriodSeconds)
	switch {
	case k.GracePeriodSeconds != nil:
		g = *k.GracePeriodSeconds
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		g = *pod.Spec.TerminationGracePeriodSeconds
	}
	if g < 0 {
		return 1
	}
	return min(g, math.MaxInt32)
}

// atMostOwn is a kill with no longer grace than the pod's own, which less than nothing stands for, too: so an eviction is set up that leaves it to the pod. Only the
// pod's deletion can give it more.
func atMostOwn(pod *corev1.Pod, k podmill.Kill) podmill.Kill {
	if g := k.GracePeriodSeconds; pod != nil && g != nil && (*g < 0 || *g > grace(pod, podmill.Kill{})) {
		k.GracePeriodSeconds = nil
	}
	return k
}

func seconds(s int64) time.Duration { return time.Duration(s) * time.Second }

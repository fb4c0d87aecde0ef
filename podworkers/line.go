package podworkers

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/lifecycle"
)

// incarnation is one life of a pod. A UID has at most two: the one that is under way and, where the pod was taken away and asked for
// again, the one that follows.
//
// It is all that an idle pod costs, so it is kept small.
type incarnation struct {
	life
	ref     podmill.PodRef
	since   time.Time     // when the state was entered
	arrival uint64        // when it was asked for, as a place in the order of all that were
	stopped chan struct{} // closed when no container runs; nil if nobody asked

	next   *incarnation // of the same UID: follows when this one has finished
	behind *incarnation // of the same full name: the first of those that wait behind this one

	cancel context.CancelCauseFunc // of the sync in flight

	follows *incarnation // the one after it in the queue of those that are ready
	at      time.Time    // when the schedule looks at it
	index   int32        // place in the schedule, from 1 on; 0 if it is not there
	queued  bool         // it is ready
	static  bool         // its full name is claimed by one pod at a time
}

type fullName struct{ namespace, name string }

func (inc *incarnation) fullName() fullName { return fullName{inc.ref.Namespace, inc.ref.Name} }

func configured(pod *corev1.Pod, arrival uint64) *incarnation {
	return &incarnation{life: newLife(pod), ref: podmill.RefOf(pod), static: lifecycle.Static(pod.Annotations), arrival: arrival}
}

func orphaned(seen *podmill.RuntimePod, arrival uint64) *incarnation {
	inc := &incarnation{life: newOrphan(seen), ref: seen.PodRef, arrival: arrival}
	for i := range seen.Sandboxes {
		inc.static = inc.static || lifecycle.Static(seen.Sandboxes[i].Annotations)
	}
	return inc
}

// lines holds, for each full name of a static pod, the one that has it; the others wait in line behind it. It knows no
// goroutine, no lock and no clock.
//
// Only a start waits in line: what has to end goes on at once, for it starts nothing. The newest arrival is served first, because
// an older one that still waits was overtaken by it: if its source takes it away it never runs, and if not, its turn comes when
// the newer one is gone.
type lines map[fullName]*incarnation

// enter lets a pod claim its name and reports whether nothing is in its way. If not, leave will return it one day.
func (l lines) enter(inc *incarnation) bool {
	if !inc.static {
		return true
	}
	holder := l[inc.fullName()]
	if holder == nil {
		l[inc.fullName()] = inc
		return true
	}
	if inc.stop != nil {
		return true
	}
	at := &holder.behind
	for *at != nil && (*at).arrival > inc.arrival {
		at = &(*at).behind
	}
	inc.behind, *at = *at, inc
	return false
}

// leave takes a pod out of its line, in whatever place it is, and returns the one that has the name from now on if that is
// another one than before.
func (l lines) leave(inc *incarnation) *incarnation {
	holder := l[inc.fullName()]
	if holder == nil {
		return nil
	}
	heir := inc.behind
	if holder == inc {
		inc.behind = nil
		if l[inc.fullName()] = heir; heir == nil {
			delete(l, inc.fullName())
		}
		return heir
	}
	for at := &holder.behind; *at != nil; at = &(*at).behind {
		if *at == inc {
			*at, inc.behind = heir, nil
			break
		}
	}
	return nil
}

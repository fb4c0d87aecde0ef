package podworkers

import (
	"cmp"
	"slices"
	"time"

	"github.com/podmill/podmill"
)

// State is where a pod is in its life. A pod goes through the states in their order, may leave some out, and never goes back.
type State uint8

// The states of a pod.
const (
	// Waiting: another incarnation has to finish first. Nothing was started.
	Waiting State = iota
	// Syncing: the pod is wanted; SyncPod is called as often as there is reason to.
	Syncing
	// Terminating: the pod has to end; SyncTerminatingPod or SyncTerminatingRuntimePod is called until no container runs.
	Terminating
	// Terminated: no container runs, and none will; SyncTerminatedPod is called until everything is cleaned up.
	Terminated
	// Finished: nothing is left. The pod is remembered until its source does not want it any more, so that it does not start
	// again.
	Finished
)

// String returns the state in lower case.
func (s State) String() string {
	switch s {
	case Waiting:
		return "waiting"
	case Syncing:
		return "syncing"
	case Terminating:
		return "terminating"
	case Terminated:
		return "terminated"
	case Finished:
		return "finished"
	default:
		return "invalid"
	}
}

// PodState is a pod as the workers see it.
type PodState struct {
	podmill.PodRef
	State State
	// Since is when State was entered.
	Since time.Time
	// Reason says in a few words why the pod is in State: what it waits for, or who wanted its end. It is empty for a pod that
	// is simply wanted.
	Reason string
	// Running says that a sync is in flight.
	Running bool
	// Failures counts the syncs that failed in a row, and Err is the error of the newest. The back-off is made of them.
	Failures int
	Err      error
	// Deadline is when the last container has to be told to die; zero until the stop has begun, and for a pod that only the
	// runtime knows.
	Deadline time.Time
	// Again says that the pod is wanted anew: when it has finished it starts afresh.
	Again bool
}

// Pods returns the state of every pod that the workers know, ordered by namespace, name and UID: for people, tests and
// housekeeping. Each call makes a new slice.
func (w *Workers) Pods() []PodState {
	w.mu.Lock()
	all := make([]PodState, 0, len(w.pods))
	for _, inc := range w.pods {
		all = append(all, w.describe(inc))
	}
	w.mu.Unlock()
	slices.SortFunc(all, func(a, b PodState) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return all
}

func (w *Workers) describe(inc *incarnation) PodState {
	s := PodState{
		PodRef: inc.ref, State: inc.state, Since: inc.since, Reason: inc.why.String(),
		Running: inc.running, Failures: int(inc.failures), Err: inc.err, Again: inc.next != nil,
	}
	if inc.stop != nil {
		s.Deadline = inc.stop.Deadline
		if inc.stop.Reason != "" {
			s.Reason += ": " + inc.stop.Reason
		}
	}
	if holder := w.lines[inc.fullName()]; inc.state == Waiting && holder != nil {
		s.Reason = "waits until " + holder.ref.String() + " has finished"
	}
	return s
}

// String says it in the words of [PodState.Reason].
func (w why) String() string {
	switch w {
	case killed:
		return "killed"
	case deleted:
		return "deleted"
	case removed:
		return "removed from its source"
	case ended:
		return "ended by itself"
	case wasEnded:
		return "had ended when it was first seen"
	case ownerless:
		return "known only from the runtime"
	default:
		return ""
	}
}

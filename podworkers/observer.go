package podworkers

import (
	"time"

	"github.com/podmill/podmill"
)

// Observer is told of what the workers do. A nil func is not called; each returns at once.
type Observer struct {
	// StateChanged follows each change of a pod's state, in the order in which they happen. It is called under the
	// workers' lock and must not call them.
	StateChanged func(pod podmill.PodRef, from, to State)
	// SyncStarted comes before each call of the Syncer; during is the state that the pod is synced in.
	SyncStarted func(pod podmill.PodRef, during State)
	// SyncEnded comes after it, with the Syncer's error.
	SyncEnded func(pod podmill.PodRef, during State, took time.Duration, err error)
}

func (o *Observer) stateChanged(pod podmill.PodRef, from, to State) {
	if o.StateChanged != nil {
		o.StateChanged(pod, from, to)
	}
}

func (o *Observer) syncStarted(pod podmill.PodRef, during State) {
	if o.SyncStarted != nil {
		o.SyncStarted(pod, during)
	}
}

func (o *Observer) syncEnded(pod podmill.PodRef, during State, took time.Duration, err error) {
	if o.SyncEnded != nil {
		o.SyncEnded(pod, during, took, err)
	}
}

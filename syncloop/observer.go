package syncloop

import (
	"time"

	"github.com/podmill/podmill"
)

// Observer is told of what a loop does. A nil func is not called; each returns at once.
type Observer struct {
	// Update follows each delivery of a source: how many pods it named, and of how many workers were told.
	Update func(source string, op podmill.PodOp, pods, changed int)
	// Conflict says that two sources want one pod.
	Conflict func(pod podmill.PodRef, kept, ignored string)
	// SourceFailed says that a source gave up, and when it is run again.
	SourceFailed func(source string, err error, again time.Duration)
	// Orphan follows each pod of the runtime that was handed over as one that nothing wants.
	Orphan func(pod podmill.PodRef)
	// Cleanup follows each round of the cleaners.
	Cleanup func(took time.Duration, err error)
}

func (o Observer) update(source string, op podmill.PodOp, pods, changed int) {
	if o.Update != nil {
		o.Update(source, op, pods, changed)
	}
}

func (o Observer) conflict(pod podmill.PodRef, kept, ignored string) {
	if o.Conflict != nil {
		o.Conflict(pod, kept, ignored)
	}
}

func (o Observer) sourceFailed(source string, err error, again time.Duration) {
	if o.SourceFailed != nil {
		o.SourceFailed(source, err, again)
	}
}

func (o Observer) orphan(pod podmill.PodRef) {
	if o.Orphan != nil {
		o.Orphan(pod)
	}
}

func (o Observer) cleanup(took time.Duration, err error) {
	if o.Cleanup != nil {
		o.Cleanup(took, err)
	}
}

package syncpod

import (
	"time"

	"github.com/podmill/podmill"
)

// Observer is told of what a syncer does. A nil func is not called; each returns at once, and may be called concurrently.
type Observer struct {
	// Planned is called with every plan that has something to do, before it is carried out.
	Planned func(pod podmill.PodRef, actions *Actions)
	// Did follows each step of carrying one out: "cgroup", "directories", "volumes", "pull secrets", "sandbox" or, with the container's name,
	// "image", "create", "start", "kill", "remove".
	Did func(pod podmill.PodRef, step, container string, took time.Duration, err error)
}

func (o Observer) planned(pod podmill.PodRef, actions *Actions) {
	if o.Planned != nil && !actions.Idle() {
		o.Planned(pod, actions)
	}
}

// did makes one step and tells of it.
func (o Observer) did(pod podmill.PodRef, step, container string, do func() error) error {
	if o.Did == nil {
		return do()
	}
	start := time.Now()
	err := do()
	o.Did(pod, step, container, time.Since(start), err)
	return err
}

package probe

import (
	"time"

	"github.com/podmill/podmill"
)

// Result is how a probe went, in the words of the kubelet's metric prober_probe_total.
type Result string

// The results of a probe. One that is unknown could not be carried out and changes nothing; a warning counts as success.
const (
	Successful Result = "successful"
	Failed     Result = "failed"
	Unknown    Result = "unknown"
)

// Run is one probe that was carried out. It has what prober_probe_total and prober_probe_duration_seconds are made of.
type Run struct {
	Pod       podmill.PodRef
	Container string
	Type      podmill.ProbeType
	Result    Result
	Message   string        // what was found, at most 10 KB
	Late      time.Duration // how long after its time it began
	Took      time.Duration
}

// Observer is told of what a manager does. A nil func is not called; each returns at once.
type Observer struct {
	// Probed follows each result that counts. Results for a container that is gone do not.
	Probed func(Run)
	// GivenUp follows each probe that had to be given up after its timeout, because what carries it out ignores its context. It
	// counts as failed, in this and in each period in which it does not come back.
	GivenUp func(pod podmill.PodRef, container string, probe podmill.ProbeType)
}

func (o Observer) probed(r Run) {
	if o.Probed != nil {
		o.Probed(r)
	}
}

func (o Observer) givenUp(pod podmill.PodRef, container string, probe podmill.ProbeType) {
	if o.GivenUp != nil {
		o.GivenUp(pod, container, probe)
	}
}

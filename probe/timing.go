package probe

import (
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// timing is when a probe is carried out.
type timing struct {
	delay, period, timeout time.Duration
}

func timingOf(p *corev1.Probe) timing {
	seconds := func(n int32) time.Duration { return time.Duration(n) * time.Second }
	return timing{
		delay:   seconds(max(0, p.InitialDelaySeconds)),
		period:  seconds(orDefault(p.PeriodSeconds, 10)),
		timeout: seconds(orDefault(p.TimeoutSeconds, 1)),
	}
}

// first returns when a container that began at a time is probed first, and not before now. The delay counts from the container's start, as
// the kubelet has it, and not from the startup probe's success.
func (t timing) first(began, now time.Time) time.Time {
	return later(began.Add(t.delay), now)
}

// next returns the turn after one: a period later, so that the time a probe takes does not add up, or at once if that has passed while
// the probe was under way.
func (t timing) next(turn, now time.Time) time.Time {
	return later(turn.Add(t.period), now)
}

// spread is a random part of the period. What ran before the agent began is all seen at once, and is not to be probed in one burst.
func (t timing) spread() time.Duration { return rand.N(t.period) }

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// ageOf returns for how long a container has run when it is seen for the first time, a look having shown the pod without it within ago. Its
// start is the runtime's wall clock, which may have jumped since: a container is no older than the look that did not show it, and none is of
// the future. Without such a look (ago is negative) the clock has to be believed.
func ageOf(started, now time.Time, ago time.Duration) time.Duration {
	if started.IsZero() {
		return 0
	}
	age := max(0, now.Round(0).Sub(started)) // Round: two wall clocks
	if ago >= 0 {
		age = min(age, ago)
	}
	return age
}

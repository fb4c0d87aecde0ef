package probe

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// kind is the index of a probe in all that is kept by kind.
type kind int

const (
	startup kind = iota
	liveness
	readiness
	kinds
)

func (k kind) name() podmill.ProbeType {
	return [kinds]podmill.ProbeType{podmill.ProbeStartup, podmill.ProbeLiveness, podmill.ProbeReadiness}[k]
}

// specs returns a container's probes by kind, nil where it has none.
func specs(c *corev1.Container) [kinds]*corev1.Probe {
	return [kinds]*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe}
}

// verdict is what the probes of one instance of a container have said, and what follows. It knows neither time nor how a probe is carried out:
// results go in by result, what is to be probed comes out of wants, and how the container is out of health.
//
//	          startup fails
//	begun ────────────────────▶ failed: nothing is probed any more but readiness
//	  │ startup succeeds           ▲
//	  ▼                            │ liveness fails
//	started: liveness, readiness ──┘
//
// A container without a startup probe begins started.
type verdict struct {
	checks  [kinds]check
	started bool
	ready   bool // what the readiness probe said last
	ending  bool
	failed  podmill.ProbeType
	message string
}

// check counts the results of one probe.
type check struct {
	exists    bool
	successes int32 // in a row, to say yes
	failures  int32 // in a row, to say no
	last      bool
	run       int32 // how often in a row the last result came, up to the threshold
}

// newVerdict begins a container's instance. prior is what was last reported of this very instance by an agent before this one; nil for a new
// container. Of it the startup and the readiness probe's yes are believed, and no verdict of liveness.
func newVerdict(c *corev1.Container, prior *corev1.ContainerStatus) verdict {
	var v verdict
	for k, spec := range specs(c) {
		if spec != nil {
			v.checks[k] = check{exists: true, successes: orDefault(spec.SuccessThreshold, 1), failures: orDefault(spec.FailureThreshold, 3)}
		}
	}
	v.started = !v.checks[startup].exists
	if prior != nil {
		v.started = v.started || prior.Started != nil && *prior.Started
		v.ready = v.started && prior.Ready
	}
	return v
}

// wants says whether a probe is to be carried out. One that asked for the container's end waits for a new container, as the other
// that could ask for it does: a container that is being stopped is left in peace.
func (v *verdict) wants(k kind) bool {
	switch {
	case !v.checks[k].exists:
		return false
	case k == readiness:
		return v.started
	default:
		return (k == startup) != v.started && v.failed == "" && !v.ending
	}
}

// result takes the result of a probe that is wanted, and says whether the container's health has changed by it.
func (v *verdict) result(k kind, ok bool, message string) (changed bool) {
	before := v.health()
	if !v.checks[k].passed(ok) {
		return false
	}
	switch {
	case k == readiness:
		v.ready = ok
	case !ok:
		v.failed, v.message = k.name(), message
	case k == startup:
		v.started = true
	}
	return v.health() != before
}

// passed counts a result and says whether it has come often enough in a row to count.
func (c *check) passed(ok bool) bool {
	threshold := c.failures
	if ok {
		threshold = c.successes
	}
	if c.last != ok {
		c.last, c.run = ok, 0
	}
	c.run = min(c.run+1, threshold)
	return c.run >= threshold
}

// health is how the container is. Of one that is ending nobody asks for its end.
func (v *verdict) health() podmill.Health {
	h := podmill.Health{Started: v.started, Ready: v.started && (v.ready || !v.checks[readiness].exists)}
	if !v.ending {
		h.Failed, h.Message = v.failed, v.message
	}
	return h
}

// orDefault returns a field of a probe or, where it is not set, the API's default.
func orDefault(n, def int32) int32 {
	if n <= 0 {
		return def
	}
	return n
}

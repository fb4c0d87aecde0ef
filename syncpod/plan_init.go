package syncpod

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/lifecycle"
)

// initContainers starts what comes next of the init containers and sidecars, and reports whether the app containers may start. A sidecar
// lets the next one start when it has started, which its startup probe may have a say in; once that one was started, nothing waits for the
// sidecar any more.
func (p *planner) initContainers() bool {
	specs := p.Pod.Spec.InitContainers
	done := p.appStarted()
	for i := range specs {
		c := &specs[i]
		kind := lifecycle.InitKind(c)
		passed := done || p.reached(specs[i+1:])
		if kind == lifecycle.Init && (passed || p.succeededHere(c.Name)) {
			continue
		}
		runs := p.container(c, kind)
		if !passed && !(runs && kind == lifecycle.Sidecar && p.started(c.Name)) {
			return false
		}
	}
	return true
}

// reached reports that one of these init containers was started in the sandbox: then those before it are done, even if they were
// collected.
func (p *planner) reached(later []corev1.Container) bool {
	return anyOf(later, func(c *corev1.Container) bool { return p.ranHere(c.Name) })
}

// started reports that a container that runs has started, as far as its startup probe goes.
func (p *planner) started(name string) bool {
	health, probed := p.Health[p.Seen.Container(name).ID]
	return !probed || health.Started
}

func (p *planner) succeededHere(name string) bool {
	last, ended := p.ended(name)
	return ended && last.ExitCode == 0 && p.ranHere(name)
}

// appStarted reports that an app container was started in the sandbox, which proves that the init containers are done.
func (p *planner) appStarted() bool {
	return anyOf(p.Pod.Spec.Containers, func(c *corev1.Container) bool { return p.ranHere(c.Name) })
}

// ranHere reports that an instance of a container is or was started in the sandbox that is used.
func (p *planner) ranHere(name string) bool {
	if p.Sandbox == nil {
		return false
	}
	r, ok := p.Known[name]
	return ok && !r.Reset && r.SandboxID == p.Sandbox.ID || anyOf(p.Seen.Containers, func(c *podmill.Container) bool {
		return c.Name == name && c.SandboxID == p.Sandbox.ID && c.State != podmill.StateCreated
	})
}

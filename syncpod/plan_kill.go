package syncpod

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/lifecycle"
)

// minimumGrace is what a container gets to stop in when its grace is used up, as the kubelet gives it.
const minimumGrace = 2 * time.Second

// killStrays kills what must not run beside, or in place of, what is wanted.
func (p *planner) killStrays() {
	grace := graceOf(p.Pod)
	for i := range p.Seen.Containers {
		c := &p.Seen.Containers[i]
		if c.State == podmill.StateExited {
			continue
		}
		spec, kind := p.spec(c.Name)
		switch {
		case c.State == podmill.StateCreated:
			p.kill(c, 0, "it was created and never started")
		case spec == nil && !p.ephemeral(c.Name):
			p.stop(c, grace, "the pod has no such container")
		case p.Seen.Container(c.Name) != c:
			p.stop(c, grace, "a newer instance is there")
		case c.State == podmill.StateUnknown:
			p.stop(c, grace, `Container is in "unknown" state, try killing it before restart`)
		case p.Sandbox == nil || c.SandboxID != p.Sandbox.ID:
			p.stop(c, grace, "Stopping container "+c.Name)
		case spec == nil || kind == lifecycle.Init:
		case p.replaced(spec, c) != "":
			p.stop(c, grace, called(kind, c.Name)+p.replaced(spec, c)+restarted(kind, p.changed(spec, c)))
		case p.unhooked(c):
			p.killUnhooked(c, grace)
		case p.Health[c.ID].Failed != "":
			p.killUnhealthy(spec, kind, c)
		}
	}
}

// killUnhealthy kills a container of which a probe asks that. When it is seen to have ended, it starts again as any other that has failed.
func (p *planner) killUnhealthy(spec *corev1.Container, kind lifecycle.Kind, c *podmill.Container) {
	failed := p.Health[c.ID].Failed
	grace, probe := graceOf(p.Pod), spec.LivenessProbe
	if failed == podmill.ProbeStartup {
		probe = spec.StartupProbe
	}
	if probe != nil && probe.TerminationGracePeriodSeconds != nil {
		grace = time.Duration(*probe.TerminationGracePeriodSeconds) * time.Second
	}
	p.stop(c, grace, fmt.Sprintf("%s failed %s probe%s",
		called(kind, c.Name), strings.ToLower(string(failed)), restarted(kind, lifecycle.RestartsOnFailure(p.Pod, spec, kind))))
	p.Kill[len(p.Kill)-1].Failed = true
}

// unhooked reports that a container must not run on because its postStart hook has not succeeded and never will.
func (p *planner) unhooked(c *podmill.Container) bool {
	state := p.Hooks[c.ID].PostStart
	return state == PostStartFailed || state == PostStartLost
}

// killUnhooked kills a container without its postStart hook. One whose hook failed has failed itself, and starts again as any other that has.
func (p *planner) killUnhooked(c *podmill.Container, grace time.Duration) {
	why := "FailedPostStartHook"
	if p.Hooks[c.ID].PostStart == PostStartLost {
		why = "Nobody knows how the postStart hook of container " + c.Name + " ended"
	}
	p.stop(c, grace, why)
	p.Kill[len(p.Kill)-1].Failed = true
}

// called is what the kubelet calls a container when it says why it kills it.
func called(kind lifecycle.Kind, name string) string {
	if kind == lifecycle.Sidecar {
		return "Init container " + name
	}
	return "Container " + name
}

// restarted is how the kubelet ends such a sentence. Of sidecars it goes without saying.
func restarted(kind lifecycle.Kind, again bool) string {
	if again && kind != lifecycle.Sidecar {
		return ", will be restarted"
	}
	return ""
}

func (p *planner) spec(name string) (*corev1.Container, lifecycle.Kind) {
	for c, kind := range lifecycle.Containers(p.Pod) {
		if c.Name == name {
			return c, kind
		}
	}
	return nil, 0
}

func (p *planner) ephemeral(name string) bool {
	return anyOf(p.Pod.Spec.EphemeralContainers, func(e *corev1.EphemeralContainer) bool { return e.Name == name })
}

// replaced says why an instance of a container has to give way to another, in the kubelet's words; nothing where it has not.
func (p *planner) replaced(spec *corev1.Container, c *podmill.Container) string {
	switch {
	case p.changed(spec, c):
		return " definition changed"
	case p.outgrown(spec, c):
		return " resize requires restart"
	}
	return ""
}

// changed reports that a running instance was made for another name or image than the spec's. A hash that other software wrote in a
// way of its own, or none, says nothing about that: such an instance runs on, and is compared with the spec that it was first met with.
func (p *planner) changed(spec *corev1.Container, c *podmill.Container) bool {
	hash := c.Annotations[podmill.AnnotationContainerHash]
	if !ourHash(hash) {
		hash = p.Adopted[c.ID]
	}
	return hash != "" && hash != hashOf(spec)
}

// stop kills a container within a grace, which has a floor, and lets its preStop hook have its part of that.
func (p *planner) stop(c *podmill.Container, grace time.Duration, why string) {
	p.preStop(c, grace)
	p.kill(c, max(minimumGrace, grace), why)
}

func (p *planner) kill(c *podmill.Container, grace time.Duration, why string) {
	p.Kill = append(p.Kill, Kill{
		ID: c.ID, Name: c.Name, Attempt: c.Attempt, Grace: grace, Remove: c.State == podmill.StateCreated, Why: why,
	})
}

// preStop begins the preStop hook of a container, if it has one and there is time for it. One that has ended by itself needs none.
func (p *planner) preStop(c *podmill.Container, grace time.Duration) {
	begun := p.Hooks[c.ID].PreStop || anyOf(p.PreStop, func(b *PreStop) bool { return b.ID == c.ID })
	if c.State != podmill.StateRunning || grace <= 0 || begun {
		return
	}
	spec, _ := p.spec(c.Name)
	if spec == nil {
		spec = annotatedSpec(c)
	}
	if spec.Lifecycle != nil && spec.Lifecycle.PreStop != nil {
		p.PreStop = append(p.PreStop, PreStop{ID: c.ID, Name: c.Name, Attempt: c.Attempt, Container: spec, Grace: grace})
	}
}

func (p *planner) killed(c *podmill.Container) bool {
	return anyOf(p.Kill, func(k *Kill) bool { return k.ID == c.ID })
}

// end stops a pod: all preStop hooks begin at once; app and init containers first, side by side; then the sidecars, the last one first, as long as there is time; then
// the sandboxes. What is left when the time is up is stopped at once.
func (p *planner) end() {
	left := min(p.Termination.Remaining(p.now), time.Duration(p.Termination.GracePeriodSeconds)*time.Second)
	for i := range p.Seen.Containers {
		p.preStop(&p.Seen.Containers[i], left) // of a sidecar, too, though its turn to stop may come later
	}
	grace := max(minimumGrace, left)
	if p.Termination.GracePeriodSeconds <= 0 {
		grace = 0
	}
	stop := func(which func(c *podmill.Container) bool) {
		for i := range p.Seen.Containers {
			c := &p.Seen.Containers[i]
			over := c.State == podmill.StateExited || c.State == podmill.StateUnknown && p.Stopped[c.ID]
			if !over && which(c) {
				p.kill(c, grace, "Stopping container "+c.Name)
			}
		}
	}
	stop(func(c *podmill.Container) bool { return left == 0 || !p.sidecar(c.Name) })
	for i := len(p.Pod.Spec.InitContainers) - 1; i >= 0 && len(p.Kill) == 0; i-- {
		stop(func(c *podmill.Container) bool { return c.Name == p.Pod.Spec.InitContainers[i].Name })
	}
	if len(p.Kill) == 0 {
		p.StopSandboxes = len(p.Seen.Sandboxes) > 0
		p.Finished = true
	}
}

func (p *planner) sidecar(name string) bool {
	spec, kind := p.spec(name)
	return spec != nil && kind == lifecycle.Sidecar
}

// graceOf returns the grace period of a pod that nobody has said anything else about.
func graceOf(pod *corev1.Pod) time.Duration {
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return corev1.DefaultTerminationGracePeriodSeconds * time.Second
}

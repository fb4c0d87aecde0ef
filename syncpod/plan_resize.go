package syncpod

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/lifecycle"
	"github.com/podmill/podmill/internal/resources"
)

// resize has running containers resized that have not what they were allocated. When all that run have it, the pod's cgroup is made to fit, and the resize is over.
func (p *planner) resize() {
	if !p.Resizing {
		return
	}
	p.Fit = true
	for c, kind := range lifecycle.Containers(p.Pod) {
		newest := p.Seen.Container(c.Name)
		if kind == lifecycle.Init || newest == nil || !p.misfits(c, newest) {
			continue
		}
		p.Fit = false
		if !p.killed(newest) {
			p.Resize = append(p.Resize, Resize{ID: newest.ID, Name: c.Name, Attempt: newest.Attempt, Container: c})
		}
	}
}

// misfits reports that a running container has not what it was allocated, or does not tell.
func (p *planner) misfits(spec *corev1.Container, c *podmill.Container) bool {
	if !p.Resizing || c.State != podmill.StateRunning {
		return false
	}
	actual, known := p.Actual[c.ID]
	return !known || !resources.SameSize(spec.Resources, actual)
}

// outgrown reports that a running container has to be started anew to have what it was allocated, as its resizePolicy says.
func (p *planner) outgrown(spec *corev1.Container, c *podmill.Container) bool {
	if !p.misfits(spec, c) {
		return false
	}
	actual, known := p.Actual[c.ID]
	return known && slices.ContainsFunc(spec.ResizePolicy, func(policy corev1.ContainerResizePolicy) bool {
		return policy.RestartPolicy == corev1.RestartContainer && resources.Differs(spec.Resources, actual, policy.ResourceName)
	})
}

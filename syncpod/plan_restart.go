package syncpod

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/lifecycle"
)

// All containers of a pod restart in its sandbox when one of them ends as its rule RestartAllContainers says (KEP-5532): also those that are done,
// and the init containers before the others. What runs is killed at once, without preStop hooks; then all instances are removed, those
// that asked for it last, so that an agent which comes to it in the middle finds the reason; then the pod starts as a new one does, but for
// the counts of restarts and the back-offs, which go on. Which have still to start is kept in the pod's directory: an agent that is restarted meanwhile
// finds nothing else that tells. Ephemeral containers are left alone.

// restartAll does the next step of such a restart, and reports whether there was one to do.
func (p *planner) restartAll() bool {
	if !anyContainer(p.Pod, p.restartsAll) {
		return false
	}
	for i := range p.Seen.Containers {
		c := &p.Seen.Containers[i]
		lives := c.State == podmill.StateRunning || c.State == podmill.StateCreated // what is unknown dies when it is removed
		if spec, _ := p.spec(c.Name); spec != nil && lives {
			p.kill(c, 0, "Stopping container "+c.Name+", all containers are restarted")
		}
	}
	if len(p.Kill) == 0 {
		p.removeAll(func(c *corev1.Container) bool { return !p.restartsAll(c) })
	}
	if len(p.Kill)+len(p.Remove) == 0 {
		p.Reset = true
		p.removeAll(p.restartsAll)
	}
	for c := range lifecycle.Containers(p.Pod) {
		if _, ended := p.ended(c.Name); ended {
			p.waitReset(c.Name)
		}
	}
	return true
}

// tellReset says of the containers that were removed, and have not started yet, what they wait for, in the kubelet's words.
func (p *planner) tellReset() {
	for c := range lifecycle.Containers(p.Pod) {
		if p.Known[c.Name].Reset && p.Seen.Container(c.Name) == nil && p.Waiting[c.Name].Reason == "" {
			p.waitReset(c.Name)
		}
	}
}

func (p *planner) waitReset(name string) {
	p.waitWith(name, corev1.ContainerStateWaiting{
		Reason: reasonRestartAll, Message: "The container is removed because RestartAllContainers in place",
	})
}

// restartsAll reports that a container has ended in such a way that all are to restart.
func (p *planner) restartsAll(c *corev1.Container) bool {
	if len(c.RestartPolicyRules) == 0 {
		return false
	}
	last, ended := p.ended(c.Name)
	return ended && !last.Reset && lifecycle.RestartsAll(c, last.ExitCode)
}

// removeAll removes all instances of some containers.
func (p *planner) removeAll(of func(c *corev1.Container) bool) {
	for i := range p.Seen.Containers {
		c := &p.Seen.Containers[i]
		if spec, _ := p.spec(c.Name); spec != nil && of(spec) {
			p.Remove = append(p.Remove, Remove{ID: c.ID, Name: c.Name, Attempt: c.Attempt})
		}
	}
}

// anyContainer reports that one of the pod's containers that restart is what is asked for.
func anyContainer(pod *corev1.Pod, is func(c *corev1.Container) bool) bool {
	for c := range lifecycle.Containers(pod) {
		if is(c) {
			return true
		}
	}
	return false
}

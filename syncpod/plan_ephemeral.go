package syncpod

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/lifecycle"
)

// ephemeralContainers starts those that have not run yet, each once and never again, in the sandbox that there is. They wait for nothing: a pod whose init
// containers do not come to an end may be just the one that somebody has to look into.
func (p *planner) ephemeralContainers() {
	if p.Sandbox == nil {
		return
	}
	for i := range p.Pod.Spec.EphemeralContainers {
		c := plain(&p.Pod.Spec.EphemeralContainers[i])
		if _, ran := p.Known[c.Name]; !ran && p.Seen.Container(c.Name) == nil {
			p.start(c, lifecycle.Ephemeral, Backoff{}, "it has not run yet")
		}
	}
}

// plain is an ephemeral container as a container. The fields are the same.
func plain(e *corev1.EphemeralContainer) *corev1.Container {
	return (*corev1.Container)(&e.EphemeralContainerCommon)
}

// target returns the ID of the container whose processes an ephemeral one shares, empty if it shares none. ok says that it is there.
func target(pod *corev1.Pod, name string, seen *podmill.RuntimePod) (id string, ok bool) {
	for i := range pod.Spec.EphemeralContainers {
		e := &pod.Spec.EphemeralContainers[i]
		if e.Name != name || e.TargetContainerName == "" {
			continue
		}
		c := seen.Container(e.TargetContainerName)
		if c == nil {
			return "", false
		}
		return c.ID, true
	}
	return "", true
}

package probe

import (
	"iter"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// restarting returns a pod's containers that may have probes: its own and its sidecars.
func restarting(p *corev1.Pod) iter.Seq[*corev1.Container] {
	return func(yield func(*corev1.Container) bool) {
		for i := range p.Spec.InitContainers {
			c := &p.Spec.InitContainers[i]
			sidecar := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
			if sidecar && hasProbes(c) && !yield(c) {
				return
			}
		}
		for i := range p.Spec.Containers {
			if c := &p.Spec.Containers[i]; hasProbes(c) && !yield(c) {
				return
			}
		}
	}
}

func hasProbes(c *corev1.Container) bool { return specs(c) != [kinds]*corev1.Probe{} }

// probed says whether any container of a pod has probes.
func probed(p *corev1.Pod) bool {
	for range restarting(p) {
		return true
	}
	return false
}

// addressOf returns where a pod is reached: at the sandbox of the container, or at the host's address where the pod has the host's network.
func addressOf(p *corev1.Pod, c *podmill.Container, seen *podmill.RuntimePod, hostIP string) string {
	if p.Spec.HostNetwork {
		return hostIP
	}
	for i := range seen.Sandboxes {
		if s := &seen.Sandboxes[i]; (c.SandboxID == "" || s.ID == c.SandboxID) && len(s.IPs) > 0 {
			return s.IPs[0]
		}
	}
	return ""
}

// reported returns what a status says of a container's instance, nil if it says nothing. A status has the runtime's name before the ID.
func reported(s *corev1.PodStatus, id string) *corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
		for i := range list {
			said := list[i].ContainerID
			if _, after, ok := strings.Cut(said, "://"); ok {
				said = after
			}
			if said == id && said != "" {
				return &list[i]
			}
		}
	}
	return nil
}

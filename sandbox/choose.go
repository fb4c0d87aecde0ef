package sandbox

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// choose decides between the sandboxes that a pod has and a new one, as the kubelet does but for one thing: what is newest is said
// by attempts, never by creation times, so that a clock that was set back does not make a dead sandbox the newest for ever.
//
// One ready sandbox is used, whatever dead ones lie beside it. Several cannot be told apart: containers may run in each of them, so
// that all have to make way.
func choose(pod *corev1.Pod, seen *podmill.RuntimePod) (current *podmill.Sandbox, attempt uint32, why string) {
	if seen == nil || len(seen.Sandboxes) == 0 {
		return nil, 0, "there is no sandbox"
	}
	ready := 0
	for i := range seen.Sandboxes {
		s := &seen.Sandboxes[i]
		attempt = max(attempt, s.Attempt+1)
		if s.Ready {
			ready++
			current = s
		}
	}
	switch {
	case ready == 0:
		why = "no sandbox is ready"
	case ready > 1:
		why = fmt.Sprintf("%d sandboxes are ready", ready)
	default:
		why = misfit(pod, current)
	}
	if why != "" {
		return nil, attempt, why
	}
	return current, current.Attempt, ""
}

// misfit says why a ready sandbox is not one for the pod, nothing if it is. Another handler of its RuntimeClass is no reason: a class
// that is made anew is for pods that are.
func misfit(pod *corev1.Pod, s *podmill.Sandbox) string {
	switch {
	case s.HostNetwork && !pod.Spec.HostNetwork:
		return "the sandbox is in the host's network and the pod is not"
	case !s.HostNetwork && pod.Spec.HostNetwork:
		return "the pod is in the host's network and the sandbox is not"
	case !s.HostNetwork && len(s.IPs) == 0:
		return "the sandbox has no address"
	}
	return ""
}

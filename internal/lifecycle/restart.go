package lifecycle

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// ExitUnknown is the exit code of a container that ran and of whose end nothing is known: the code of a kill, so that
// it is never taken for a success.
const ExitUnknown int32 = 137

// Restarts reports whether a container that exited with code is to run again.
//
// A sidecar always does. An init container does not after a success, and after a failure does unless the policy is Never. A container's own
// policy and rules (KEP-5307) come before the pod's.
func Restarts(pod *corev1.Pod, c *corev1.Container, kind Kind, code int32) bool {
	switch {
	case kind == Sidecar:
		return true
	case kind == Init && code == 0:
		return false
	case ruleRestarts(c, code):
		return true
	}
	policy := pod.Spec.RestartPolicy
	if c.RestartPolicy != nil {
		policy = corev1.RestartPolicy(*c.RestartPolicy)
	}
	switch policy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return code != 0
	default: // Always is what the API defaults to
		return true
	}
}

// ruleRestarts reports whether one of the container's rules says Restart for the code. The only other action, RestartAllContainers, is
// the pod's business and not this container's.
func ruleRestarts(c *corev1.Container, code int32) bool {
	return slices.ContainsFunc(c.RestartPolicyRules, func(r corev1.ContainerRestartRule) bool {
		if r.Action != corev1.ContainerRestartRuleActionRestart || r.ExitCodes == nil {
			return false
		}
		in := slices.Contains(r.ExitCodes.Values, code)
		return in == (r.ExitCodes.Operator == corev1.ContainerRestartRuleOnExitCodesOpIn)
	})
}

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
	case ruleFor(c, code) == corev1.ContainerRestartRuleActionRestart:
		return true
	}
	switch policyOf(pod, c) {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return code != 0
	default: // Always is what the API defaults to
		return true
	}
}

// RestartsOnFailure reports whether a container runs again after it was stopped because it had failed. Rules have no say in that:
// they are about the exit codes of containers that end by themselves.
func RestartsOnFailure(pod *corev1.Pod, c *corev1.Container, kind Kind) bool {
	return kind == Sidecar || policyOf(pod, c) != corev1.RestartPolicyNever
}

// policyOf returns a container's own restart policy, or else the pod's.
func policyOf(pod *corev1.Pod, c *corev1.Container) corev1.RestartPolicy {
	if c.RestartPolicy != nil {
		return corev1.RestartPolicy(*c.RestartPolicy)
	}
	return pod.Spec.RestartPolicy
}

// RestartsAll reports whether all containers of the pod are to restart because one of them ended with code (KEP-5532).
func RestartsAll(c *corev1.Container, code int32) bool {
	return ruleFor(c, code) == corev1.ContainerRestartRuleActionRestartAllContainers
}

// ruleFor returns the action of the first of the container's rules that is about the code, empty if none is.
func ruleFor(c *corev1.Container, code int32) corev1.ContainerRestartRuleAction {
	for _, rule := range c.RestartPolicyRules {
		on := rule.ExitCodes
		if on != nil && slices.Contains(on.Values, code) == (on.Operator == corev1.ContainerRestartRuleOnExitCodesOpIn) {
			return rule.Action
		}
	}
	return ""
}

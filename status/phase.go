package status

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// nextPhase returns the phase that a status tells. A final phase is told only once nothing of the pod can still run, and
// never changes again.
func nextPhase(in *Input, status *corev1.PodStatus, initialized bool) corev1.PodPhase {
	if final(in.Last.Phase) {
		return in.Last.Phase
	}
	phase := phaseOf(&in.Pod.Spec, status, initialized)
	if in.Progress.Stopped {
		phase = stoppedPhase(in, status)
	} else if final(phase) && mayRun(in.Seen) {
		phase = corev1.PodRunning
	}
	return phase
}

// phaseOf is the phase by the states of the containers, as the pod lifecycle documents it.
func phaseOf(spec *corev1.PodSpec, status *corev1.PodStatus, initialized bool) corev1.PodPhase {
	if !initialized {
		if initFailed(spec, status) {
			return corev1.PodFailed
		}
		return corev1.PodPending
	}
	var running, stopped, succeeded int
	for i := range status.ContainerStatuses {
		s := &status.ContainerStatuses[i]
		end := s.State.Terminated
		if s.State.Waiting != nil {
			// One that waits to be restarted has been started before, and counts by how it ended.
			end = s.LastTerminationState.Terminated
		}
		switch {
		case s.State.Running != nil:
			running++
		case end == nil:
			return corev1.PodPending
		default:
			stopped++
			if end.ExitCode == 0 && s.State.Terminated != nil {
				succeeded++
			}
		}
	}
	switch {
	case running > 0 || stopped == 0 || spec.RestartPolicy == corev1.RestartPolicyAlways:
		return corev1.PodRunning
	case succeeded == stopped:
		return corev1.PodSucceeded
	case spec.RestartPolicy == corev1.RestartPolicyNever:
		return corev1.PodFailed
	default:
		return corev1.PodRunning
	}
}

// stoppedPhase is the phase of a pod that was ended from outside, or has come to its end: Succeeded where every container exited with 0
// and nobody gave a reason to call it a failure.
func stoppedPhase(in *Input, status *corev1.PodStatus) corev1.PodPhase {
	if t := in.Progress.Termination; t != nil && t.Reason != "" {
		return corev1.PodFailed
	}
	failed := func(s corev1.ContainerStatus) bool {
		return s.State.Terminated == nil || s.State.Terminated.ExitCode != 0
	}
	if slices.ContainsFunc(status.ContainerStatuses, failed) {
		return corev1.PodFailed
	}
	return corev1.PodSucceeded
}

// initFailed reports whether an init container failed that will not be tried again.
func initFailed(spec *corev1.PodSpec, status *corev1.PodStatus) bool {
	if spec.RestartPolicy != corev1.RestartPolicyNever {
		return false
	}
	for i := range spec.InitContainers {
		t := status.InitContainerStatuses[i].State.Terminated
		if t != nil && t.ExitCode != 0 && !sidecar(&spec.InitContainers[i]) {
			return true
		}
	}
	return false
}

// mayRun reports whether some container may be running. One in an unknown state may.
func mayRun(seen *podmill.RuntimePod) bool {
	return slices.ContainsFunc(seen.Containers, func(c podmill.Container) bool {
		return c.State == podmill.StateRunning || c.State == podmill.StateUnknown
	})
}

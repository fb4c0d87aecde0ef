package status

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/lifecycle"
)

// nextPhase returns the phase that a status tells. A final phase is told only once nothing of the pod can still run, and
// never changes again.
func nextPhase(in *Input, status *corev1.PodStatus, initialized bool) corev1.PodPhase {
	if final(in.Last.Phase) {
		return in.Last.Phase
	}
	phase := phaseOf(in.Pod, status, initialized)
	if in.Progress.Stopped {
		phase = stoppedPhase(in, status)
	} else if final(phase) && mayRun(in.Seen) {
		phase = corev1.PodRunning
	}
	return phase
}

// phaseOf is the phase by the states of the containers, as the pod lifecycle documents it.
func phaseOf(pod *corev1.Pod, status *corev1.PodStatus, initialized bool) corev1.PodPhase {
	if !initialized {
		if initFailed(pod, status) {
			return corev1.PodFailed
		}
		return corev1.PodPending
	}
	running, failed := false, false
	for i := range status.ContainerStatuses {
		s := &status.ContainerStatuses[i]
		switch end := s.State.Terminated; {
		case end == nil && s.State.Running == nil && s.LastTerminationState.Terminated == nil:
			return corev1.PodPending // it was never started
		case end == nil, lifecycle.Restarts(pod, &pod.Spec.Containers[i], lifecycle.App, end.ExitCode):
			running = true // or it will be again
		case end.ExitCode != 0:
			failed = true
		}
	}
	switch {
	case running:
		return corev1.PodRunning
	case failed:
		return corev1.PodFailed
	default:
		return corev1.PodSucceeded
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
func initFailed(pod *corev1.Pod, status *corev1.PodStatus) bool {
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		end := status.InitContainerStatuses[i].State.Terminated
		if end != nil && end.ExitCode != 0 && !lifecycle.Restarts(pod, c, lifecycle.InitKind(c), end.ExitCode) {
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

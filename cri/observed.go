package cri

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill"
)

// podOf returns whose a thing is, by the kubelet's labels.
func podOf(labels map[string]string) podmill.PodRef {
	return podmill.PodRef{
		UID:       types.UID(labels[podmill.LabelPodUID]),
		Namespace: labels[podmill.LabelPodNamespace],
		Name:      labels[podmill.LabelPodName],
	}
}

func sandboxState(s runtimeapi.PodSandboxState) podmill.State {
	switch s {
	case runtimeapi.PodSandboxState_SANDBOX_READY:
		return podmill.StateRunning
	case runtimeapi.PodSandboxState_SANDBOX_NOTREADY:
		return podmill.StateExited
	default:
		return podmill.StateUnknown
	}
}

func containerState(s runtimeapi.ContainerState) podmill.State {
	switch s {
	case runtimeapi.ContainerState_CONTAINER_CREATED:
		return podmill.StateCreated
	case runtimeapi.ContainerState_CONTAINER_RUNNING:
		return podmill.StateRunning
	case runtimeapi.ContainerState_CONTAINER_EXITED:
		return podmill.StateExited
	default:
		return podmill.StateUnknown
	}
}

func observedSandbox(s *runtimeapi.PodSandboxStatus) podmill.Sandbox {
	out := podmill.Sandbox{
		ID:             s.GetId(),
		Attempt:        s.GetMetadata().GetAttempt(),
		Ready:          s.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY && s != nil,
		CreatedAt:      when(s.GetCreatedAt()),
		HostNetwork:    s.GetLinux().GetNamespaces().GetOptions().GetNetwork() == runtimeapi.NamespaceMode_NODE,
		RuntimeHandler: s.GetRuntimeHandler(),
		Labels:         s.GetLabels(),
		Annotations:    s.GetAnnotations(),
	}
	if ip := s.GetNetwork().GetIp(); ip != "" && !out.HostNetwork {
		out.IPs = append(out.IPs, ip)
		for _, more := range s.GetNetwork().GetAdditionalIps() {
			out.IPs = append(out.IPs, more.GetIp())
		}
	}
	return out
}

func observedContainer(s *runtimeapi.ContainerStatus) podmill.Container {
	return podmill.Container{
		ID:          s.GetId(),
		Name:        s.GetMetadata().GetName(),
		Attempt:     s.GetMetadata().GetAttempt(),
		State:       stateOf(s),
		Image:       s.GetImage().GetImage(),
		ImageID:     s.GetImageRef(),
		CreatedAt:   when(s.GetCreatedAt()),
		StartedAt:   when(s.GetStartedAt()),
		FinishedAt:  when(s.GetFinishedAt()),
		ExitCode:    s.GetExitCode(),
		Reason:      s.GetReason(),
		Message:     s.GetMessage(),
		LogPath:     s.GetLogPath(),
		Labels:      s.GetLabels(),
		Annotations: s.GetAnnotations(),
	}
}

// stateOf returns a container's state; an empty message says nothing, least of all that the container was created.
func stateOf(s *runtimeapi.ContainerStatus) podmill.State {
	if s == nil {
		return podmill.StateUnknown
	}
	return containerState(s.GetState())
}

// when is a time of CRI, in nanoseconds; what has not come yet is zero.
func when(nanos int64) time.Time {
	if nanos <= 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos)
}

package cri

import (
	"strings"
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
		Ready:          s != nil && s.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY,
		CreatedAt:      when(s.GetCreatedAt()),
		HostNetwork:    s.GetLinux().GetNamespaces().GetOptions().GetNetwork() == runtimeapi.NamespaceMode_NODE,
		RuntimeHandler: s.GetRuntimeHandler(),
		Labels:         s.GetLabels(),
		Annotations:    s.GetAnnotations(),
	}
	if ip := s.GetNetwork().GetIp(); ip != "" && !out.HostNetwork { // some runtimes tell the host's addresses
		out.IPs = append(out.IPs, ip)
		for _, more := range s.GetNetwork().GetAdditionalIps() {
			if more.GetIp() != "" {
				out.IPs = append(out.IPs, more.GetIp())
			}
		}
	}
	return out
}

func observedContainer(s *runtimeapi.ContainerStatus) podmill.Container {
	out := podmill.Container{
		ID:          s.GetId(),
		Name:        s.GetMetadata().GetName(),
		Attempt:     s.GetMetadata().GetAttempt(),
		Image:       s.GetImage().GetImage(),
		ImageID:     s.GetImageRef(),
		CreatedAt:   when(s.GetCreatedAt()),
		Reason:      s.GetReason(),
		Message:     s.GetMessage(),
		LogPath:     s.GetLogPath(),
		StopSignal:  signalName(s.GetStopSignal()),
		Labels:      s.GetLabels(),
		Annotations: s.GetAnnotations(),
		Resources:   observedResources(s.GetResources().GetLinux()),
	}
	for _, m := range s.GetMounts() {
		if m.GetRecursiveReadOnly() {
			out.ReadOnlyBelow = append(out.ReadOnlyBelow, m.GetContainerPath())
		}
	}
	if s == nil { // says nothing, least of all that the container was created
		return out
	}
	// What a state excludes is left out, whatever the runtime says: nothing has an exit code that runs.
	switch out.State = containerState(s.GetState()); out.State {
	case podmill.StateRunning:
		out.StartedAt = when(s.GetStartedAt())
	case podmill.StateExited, podmill.StateUnknown:
		out.StartedAt, out.FinishedAt, out.ExitCode = when(s.GetStartedAt()), when(s.GetFinishedAt()), s.GetExitCode()
	}
	return out
}

// signalName is Kubernetes' name of a signal, empty for the runtime's default: CRI's SIGNAL_SIGRTMINPLUS1 is SIGRTMIN+1.
func signalName(s runtimeapi.Signal) string {
	if s == runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT {
		return ""
	}
	return strings.NewReplacer("SIGNAL_", "", "PLUS", "+", "MINUS", "-").Replace(s.String())
}

func observedImage(i *runtimeapi.Image) podmill.Image {
	out := podmill.Image{
		ID: i.GetId(), RepoTags: i.GetRepoTags(), RepoDigests: i.GetRepoDigests(), Size: i.GetSize(), Username: i.GetUsername(), Pinned: i.GetPinned(),
	}
	if uid := i.GetUid(); uid != nil {
		out.UID = &uid.Value
	}
	return out
}

func observedStatus(it *identity, s *runtimeapi.StatusResponse) *podmill.RuntimeStatus {
	out := &podmill.RuntimeStatus{
		Name: it.name, Version: it.version, CgroupDriver: it.cgroupDriver, SupplementalGroupsPolicy: s.GetFeatures().GetSupplementalGroupsPolicy(),
	}
	for _, condition := range s.GetStatus().GetConditions() {
		seen := podmill.Condition{OK: condition.GetStatus(), Reason: condition.GetReason(), Message: condition.GetMessage()}
		switch condition.GetType() {
		case runtimeapi.RuntimeReady:
			out.RuntimeReady = seen
		case runtimeapi.NetworkReady:
			out.NetworkReady = seen
		}
	}
	for _, handler := range s.GetRuntimeHandlers() {
		can := handler.GetFeatures()
		out.Handlers = append(out.Handlers, podmill.RuntimeHandler{
			Name: handler.GetName(), RecursiveReadOnlyMounts: can.GetRecursiveReadOnlyMounts(), UserNamespaces: can.GetUserNamespaces(),
		})
	}
	return out
}

// when is a time of CRI, in nanoseconds; what has not come yet is zero.
func when(nanos int64) time.Time {
	if nanos <= 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos)
}

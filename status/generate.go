package status

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/lifecycle"
	"github.com/podmill/podmill/internal/qos"
)

// Input is all that a status is made of.
type Input struct {
	Pod      *corev1.Pod
	Seen     *podmill.RuntimePod // nil is the same as a pod that the runtime does not know
	Progress podmill.Progress
	// Last is the newest status that was generated or, after a restart, the last that the source knows; nil if there is none.
	Last *corev1.PodStatus
	// Runtime prefixes container IDs, as in containerd://4f2a...; it is the runtime's name.
	Runtime string
	// HostIPs are the node's addresses, the primary one first.
	HostIPs []string
}

// Generate returns the status of a pod. It is a pure function of in and now; now is used only for what has changed.
func Generate(in Input, now time.Time) corev1.PodStatus {
	if in.Seen == nil {
		in.Seen = &podmill.RuntimePod{}
	}
	if in.Last == nil {
		in.Last = &corev1.PodStatus{}
	}
	if rejected(&in) {
		return *in.Last.DeepCopy()
	}
	spec := &in.Pod.Spec
	status := corev1.PodStatus{
		ObservedGeneration: in.Pod.Generation,
		QOSClass:           in.Last.QOSClass,
		StartTime:          in.Last.StartTime,
		Reason:             in.Last.Reason,
		Message:            in.Last.Message,
		NominatedNodeName:  in.Last.NominatedNodeName,
	}
	if status.QOSClass == "" {
		status.QOSClass = qos.Class(in.Pod)
	}
	if status.StartTime == nil {
		start := seconds(now)
		status.StartTime = &start
	}
	c := containers{in: &in}
	status.InitContainerStatuses = c.statuses(spec.InitContainers, in.Last.InitContainerStatuses, initContainer)
	isInitialized := initialized(spec, status.InitContainerStatuses, in.Seen)
	status.ContainerStatuses = c.statuses(spec.Containers, in.Last.ContainerStatuses, appContainer)
	status.EphemeralContainerStatuses = c.statuses(ephemeral(spec), in.Last.EphemeralContainerStatuses, ephemeralContainer)

	status.Phase = nextPhase(&in, &status, isInitialized)
	if t := in.Progress.Termination; t != nil && t.Reason != "" && !final(in.Last.Phase) && final(status.Phase) {
		status.Reason, status.Message = t.Reason, t.Message
	}
	addresses(&in, &status)
	status.Conditions = conditions(&in, &status, isInitialized, now)
	return status
}

// rejected reports that a pod was over before there was anything to tell of its containers, and there is nothing now.
func rejected(in *Input) bool {
	return final(in.Last.Phase) && in.Seen.Empty() && len(in.Last.InitContainerStatuses)+len(in.Last.ContainerStatuses) == 0
}

func final(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}

// addresses tells where the node and the pod are. A pod keeps the last addresses that it had when its sandbox is gone.
func addresses(in *Input, status *corev1.PodStatus) {
	status.HostIP, status.HostIPs = in.Last.HostIP, in.Last.HostIPs
	if len(in.HostIPs) > 0 {
		status.HostIP, status.HostIPs = in.HostIPs[0], nil
		for _, ip := range in.HostIPs {
			status.HostIPs = append(status.HostIPs, corev1.HostIP{IP: ip})
		}
	}
	status.PodIP, status.PodIPs = in.Last.PodIP, in.Last.PodIPs
	var ips []string
	switch sandbox := readySandbox(in.Seen); {
	case sandbox == nil:
	case in.Pod.Spec.HostNetwork:
		ips = in.HostIPs
	default:
		ips = sandbox.IPs
	}
	if len(ips) > 0 {
		status.PodIP, status.PodIPs = ips[0], nil
		for _, ip := range ips {
			status.PodIPs = append(status.PodIPs, corev1.PodIP{IP: ip})
		}
	}
}

// readySandbox returns the newest sandbox if it is ready, nil otherwise.
func readySandbox(seen *podmill.RuntimePod) *podmill.Sandbox {
	if len(seen.Sandboxes) == 0 || !seen.Sandboxes[0].Ready {
		return nil
	}
	return &seen.Sandboxes[0]
}

// ephemeral returns the pod's ephemeral containers as plain ones; a status asks only for name and image.
func ephemeral(spec *corev1.PodSpec) []corev1.Container {
	var out []corev1.Container
	for i := range spec.EphemeralContainers {
		out = append(out, corev1.Container(spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
	return out
}

// sidecar reports whether an init container runs beside the others instead of before them (KEP-753).
func sidecar(c *corev1.Container) bool { return lifecycle.InitKind(c) == lifecycle.Sidecar }

// initialized reports whether the pod's init containers are done. A container of the pod that was ever started proves that they were, even if
// they have been collected since.
func initialized(spec *corev1.PodSpec, statuses []corev1.ContainerStatus, seen *podmill.RuntimePod) bool {
	app := func(name string) bool {
		return slices.ContainsFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == name })
	}
	sandbox := readySandbox(seen)
	for i := range seen.Containers {
		c := &seen.Containers[i]
		if app(c.Name) && c.State != podmill.StateCreated && (sandbox == nil || c.SandboxID == sandbox.ID) {
			return true
		}
	}
	for i := range spec.InitContainers {
		s := &statuses[i]
		done := s.State.Terminated != nil && s.State.Terminated.ExitCode == 0
		if sidecar(&spec.InitContainers[i]) {
			done = s.Started != nil && *s.Started
		}
		if !done {
			return false
		}
	}
	return true
}

package podmill

import corev1 "k8s.io/api/core/v1"

// Progress is what an agent knows of a pod that the runtime does not show: why containers wait, and that the pod is
// ending. With the pod and what the runtime holds it makes a status.
type Progress struct {
	// Waiting says, by container name, why a container that should run does not: ContainerCreating, CrashLoopBackOff,
	// ErrImagePull and so on, with the kubelet's message. A container in it is not said to run, even if its process does: its postStart hook
	// has not ended.
	Waiting map[string]corev1.ContainerStateWaiting
	// Health is, by container ID, how the running containers are that somebody probes. One that is not in it counts as started and ready.
	Health map[string]Health
	// Messages are, by container ID, the last words of containers that have ended: their termination messages.
	Messages map[string]string
	// Resize is set for a pod whose containers have been asked to have other resources since they were started.
	Resize *ResizeProgress
	// Termination is set from the moment that the pod has to end.
	Termination *Termination
	// Stopped says that every container has stopped for good, so that the final phase may be told.
	Stopped bool
	// Removed says that nothing is left of the pod, volumes and directories included, so that its deletion may be confirmed.
	Removed bool
}

// ResizeProgress is how far other resources have come that a pod's spec asks for (KEP-1287): from what is asked for to what was allocated, and from there to
// what the containers have.
type ResizeProgress struct {
	// Pending is why the pod has not been allocated what its spec asks for: [corev1.PodReasonDeferred] or [corev1.PodReasonInfeasible], with a message; empty where
	// it has.
	Pending, PendingMessage string
	// InProgress says that what was allocated is not what all containers have yet. Generation is that of the pod which asked for it.
	InProgress bool
	Generation int64
	// Error is why the last try to give a container what it was allocated has failed.
	Error string
	// Allocated is what containers were allocated, by name. One that is not in it has what it was started with.
	Allocated map[string]corev1.ResourceRequirements
	// Actual is what running containers have, by ID. One that is not in it has what it was started with.
	Actual map[string]corev1.ResourceRequirements
}

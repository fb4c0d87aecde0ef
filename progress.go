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
	// Termination is set from the moment that the pod has to end.
	Termination *Termination
	// Stopped says that every container has stopped for good, so that the final phase may be told.
	Stopped bool
	// Removed says that nothing is left of the pod, volumes and directories included, so that its deletion may be confirmed.
	Removed bool
}

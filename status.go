package podmill

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// StatusSink is where the statuses of pods go: an API server, a directory of files, a function.
//
// Calls for one pod come one after another, the newest status last; calls for different pods come concurrently. A sink
// drops a write that changes nothing. Any error but ErrGone means that the caller will try again.
type StatusSink interface {
	// UpdateStatus takes the newest status of a pod, never that of another pod of the same name: a sink that finds
	// another UID answers ErrGone.
	UpdateStatus(ctx context.Context, pod *corev1.Pod, status *corev1.PodStatus) error
	// FinishPod says that the pod was to be deleted and is done: its last status was delivered, its containers have stopped and its volumes
	// are gone. An API sink confirms the deletion, a file sink drops the record. It is idempotent.
	FinishPod(ctx context.Context, pod *corev1.Pod) error
}

// EventRecorder takes the events that people read: about what (an object reference whose FieldPath may name a container, as
// [ReferenceTo] makes it), whether it is [corev1.EventTypeNormal] or [corev1.EventTypeWarning], the kubelet's reason and
// a sentence. It does not block, may drop what comes too often, and may be called concurrently.
type EventRecorder interface {
	Event(about corev1.ObjectReference, eventType, reason, message string)
}

// ReferenceTo returns a reference to a pod or, where container is not empty, to its container or init container of that name.
func ReferenceTo(pod *corev1.Pod, container string) corev1.ObjectReference {
	ref := corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
	}
	if container == "" {
		return ref
	}
	ref.FieldPath = "spec.containers{" + container + "}"
	for i := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[i].Name == container {
			ref.FieldPath = "spec.initContainers{" + container + "}"
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if pod.Spec.EphemeralContainers[i].Name == container {
			ref.FieldPath = "spec.ephemeralContainers{" + container + "}"
		}
	}
	return ref
}

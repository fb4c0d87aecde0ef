package podmill

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// PodSource is somewhere that pods are asked for: a directory of manifests, a URL, an API server.
//
// Pods are delivered defaulted, valid and complete: with namespace, name and UID, which is the identity, unique over all
// sources and new for a pod that must not be taken for an older one. A pod's Status is its last known one where the source
// has it, which lets start time, deadlines and restart counts survive a reboot. A pod with a DeletionTimestamp is to be
// stopped; a pod that is no longer delivered is to be stopped and forgotten.
type PodSource interface {
	// Name is the source's name for logs and, as the kubelet's annotation kubernetes.io/config.source, for tools: "file",
	// "http", "api".
	Name() string
	// Run calls deliver with every change until ctx ends, from one goroutine. The source is synced with its first Replace, which comes only once
	// the whole set is known: until then nothing that might be its own is stopped. Before it come at most Upserts, of pods that are
	// known from earlier. deliver
	// may block for a moment and keeps the pods, which are read-only from then on. An error before ctx ends means that the source has
	// given up; what was delivered stays as it is.
	Run(ctx context.Context, deliver func(PodUpdate)) error
}

// PodUpdate is a change in what a source asks for.
type PodUpdate struct {
	Op   PodOp
	Pods []*corev1.Pod
}

// PodOp is the kind of a [PodUpdate].
type PodOp uint8

// The kinds of change.
const (
	// ReplacePods makes Pods the source's whole set, and says that it is synced.
	ReplacePods PodOp = iota
	// UpsertPods adds Pods to the set, or replaces those of the same UID.
	UpsertPods
	// DeletePods takes Pods from the set, by UID.
	DeletePods
)

// String returns the kubelet's word for the operation.
func (o PodOp) String() string {
	switch o {
	case ReplacePods:
		return "SET"
	case UpsertPods:
		return "UPDATE"
	case DeletePods:
		return "REMOVE"
	default:
		return "INVALID"
	}
}

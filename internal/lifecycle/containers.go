package lifecycle

import (
	"iter"

	corev1 "k8s.io/api/core/v1"
)

// Kind is the part that a container plays in its pod.
type Kind uint8

// The kinds of container.
const (
	// App containers are what the pod is for: they decide its phase.
	App Kind = iota
	// Init containers run to success, one after another, before any app container starts.
	Init
	// Sidecar is an init container that keeps running (restartPolicy Always, KEP-753): the next one starts when this one has
	// started, and it never decides the pod's phase.
	Sidecar
	// Ephemeral containers are added to a pod that runs, for somebody to look into it. They are started once, and have no say in anything.
	Ephemeral
)

// String returns the kind in lower case.
func (k Kind) String() string {
	switch k {
	case App:
		return "app"
	case Init:
		return "init"
	case Sidecar:
		return "sidecar"
	case Ephemeral:
		return "ephemeral"
	default:
		return "unknown"
	}
}

// InitKind tells the two kinds of a pod's init containers apart.
func InitKind(c *corev1.Container) Kind {
	if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
		return Sidecar
	}
	return Init
}

// Containers yields a pod's containers in the order in which they start: init containers and sidecars as the spec has
// them, then the app containers.
func Containers(pod *corev1.Pod) iter.Seq2[*corev1.Container, Kind] {
	return func(yield func(*corev1.Container, Kind) bool) {
		for i := range pod.Spec.InitContainers {
			c := &pod.Spec.InitContainers[i]
			if !yield(c, InitKind(c)) {
				return
			}
		}
		for i := range pod.Spec.Containers {
			if !yield(&pod.Spec.Containers[i], App) {
				return
			}
		}
	}
}

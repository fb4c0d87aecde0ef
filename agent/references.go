package agent

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/references"
)

// refers reports whether a pod refers to an object.
func refers(pod *corev1.Pod, ref podmill.ObjectRef) bool {
	if ref.Kind == "RuntimeClass" {
		return pod.Spec.RuntimeClassName != nil && *pod.Spec.RuntimeClassName == ref.Name
	}
	return slices.Contains(references.Of(pod), ref)
}

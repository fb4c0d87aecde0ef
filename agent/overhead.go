package agent

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// overhead is what the sandbox of a pod needs, by its RuntimeClass. An API server has said so of its pods; nobody has of those from elsewhere.
func overhead(classes podmill.RuntimeClasses, pod *corev1.Pod) corev1.ResourceList {
	if pod.Annotations[podmill.AnnotationConfigSource] == "api" {
		return nil
	}
	class, err := classes.RuntimeClass(context.Background(), *pod.Spec.RuntimeClassName)
	if err != nil || class.Overhead == nil { // without a class it has no sandbox, and people are told
		return nil
	}
	return class.Overhead.PodFixed
}

package agent

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/lifecycle"
)

// overhead is what the sandbox of a pod needs, by its RuntimeClass. An API server has said so of its pods; nobody has of those from elsewhere.
func overhead(ctx context.Context, classes podmill.RuntimeClasses, pod *corev1.Pod) (corev1.ResourceList, error) {
	if pod.Annotations[podmill.AnnotationConfigSource] == lifecycle.API {
		return nil, nil
	}
	class, err := classes.RuntimeClass(ctx, *pod.Spec.RuntimeClassName)
	switch {
	case errors.Is(err, podmill.ErrNotFound): // without a class it has no sandbox, and people are told
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("overhead of the RuntimeClass of pod %s: %w", podmill.RefOf(pod), err)
	case class.Overhead == nil:
		return nil, nil
	}
	return class.Overhead.PodFixed, nil
}

package status

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/lifecycle"
)

// runsWith returns the resources that a container was started with, nil where it does not tell.
func runsWith(c *podmill.Container) *corev1.ResourceRequirements {
	text, ok := c.Annotations[podmill.AnnotationContainerResources]
	r := &corev1.ResourceRequirements{}
	if text == "{}" {
		return r
	}
	if !ok || json.Unmarshal([]byte(text), r) != nil {
		return nil
	}
	return r
}

// resizePending is the verdict of PodResizePending (KEP-1287). Containers are not resized while they run: one whose resources have changed in the spec
// keeps what it has until it is started again, and people are told, with the kubelet's reason for what cannot be done.
func resizePending(in *Input, status *corev1.PodStatus) verdict {
	if final(status.Phase) || in.Progress.Termination != nil {
		return verdict{}
	}
	statuses, next := slices.Concat(status.InitContainerStatuses, status.ContainerStatuses), 0
	for c, kind := range lifecycle.Containers(in.Pod) {
		r := statuses[next].Resources
		next++
		if kind == lifecycle.Init || r == nil {
			continue
		}
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			if differs(r.Requests, c.Resources.Requests, name) || differs(r.Limits, c.Resources.Limits, name) {
				return verdict{ok: true, reason: corev1.PodReasonInfeasible, message: fmt.Sprintf(
					"container %s keeps the %s that it was started with until it is started again: running containers are not resized here", c.Name, name)}
			}
		}
	}
	return verdict{}
}

func differs(a, b corev1.ResourceList, name corev1.ResourceName) bool {
	x, y := a[name], b[name]
	return x.Cmp(y) != 0
}

// Package qos computes the quality of service class of a pod.
package qos

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Class returns the class of a pod by its requests and limits of CPU and memory, as Kubernetes documents it: Guaranteed where every
// container limits both and asks for just as much, BestEffort where none asks for anything, Burstable in between. Resources of
// the pod as a whole (KEP-2837), where given, stand for those of its containers.
func Class(pod *corev1.Pod) corev1.PodQOSClass {
	asks, guaranteed := false, true
	see := func(r corev1.ResourceRequirements) {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			request, limit := positive(r.Requests, name), positive(r.Limits, name)
			asks = asks || request != nil || limit != nil
			// A limit without a request is a request of the same size.
			guaranteed = guaranteed && limit != nil && (request == nil || request.Cmp(*limit) == 0)
		}
	}
	if r := pod.Spec.Resources; r != nil && (counts(r.Requests) || counts(r.Limits)) {
		see(*r)
	} else {
		for i := range pod.Spec.InitContainers {
			see(pod.Spec.InitContainers[i].Resources)
		}
		for i := range pod.Spec.Containers {
			see(pod.Spec.Containers[i].Resources)
		}
	}
	switch {
	case !asks:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	default:
		return corev1.PodQOSBurstable
	}
}

func counts(list corev1.ResourceList) bool {
	return positive(list, corev1.ResourceCPU) != nil || positive(list, corev1.ResourceMemory) != nil
}

func positive(list corev1.ResourceList, name corev1.ResourceName) *resource.Quantity {
	if q, ok := list[name]; ok && q.Sign() > 0 {
		return &q
	}
	return nil
}

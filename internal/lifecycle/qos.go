package lifecycle

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// QOSClass returns the pod's quality of service class: the one that its status already names, because it never changes,
// or else what requests and limits of CPU and memory make it. A missing request counts as the limit.
func QOSClass(pod *corev1.Pod) corev1.PodQOSClass {
	if pod.Status.QOSClass != "" {
		return pod.Status.QOSClass
	}
	if r := pod.Spec.Resources; r != nil {
		if some, both := asked(r); some {
			return classOf(some, both)
		}
	}
	anything, guaranteed := false, true
	for c := range Containers(pod) {
		some, both := asked(&c.Resources)
		anything = anything || some
		guaranteed = guaranteed && both
	}
	return classOf(anything, guaranteed)
}

func classOf(anything, guaranteed bool) corev1.PodQOSClass {
	switch {
	case !anything:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	default:
		return corev1.PodQOSBurstable
	}
}

// asked reports whether some CPU or memory is requested or limited, and whether both are limited to exactly what is requested.
func asked(r *corev1.ResourceRequirements) (some, both bool) {
	both = true
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		request, limit := positive(r.Requests, name), positive(r.Limits, name)
		some = some || request != nil || limit != nil
		if limit == nil || request != nil && request.Cmp(*limit) != 0 {
			both = false
		}
	}
	return some, both
}

func positive(list corev1.ResourceList, name corev1.ResourceName) *resource.Quantity {
	if q, ok := list[name]; ok && q.Sign() > 0 {
		return &q
	}
	return nil
}

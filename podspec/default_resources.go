package podspec

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podmill/podmill/internal/lifecycle"
)

// defaultPodResources completes what a pod asks for as a whole (KEP-2837) by what its containers ask for, if it asks for anything: limits of
// huge pages, then requests, then limits of what every container limits.
func defaultPodResources(pod *corev1.Pod) {
	r := pod.Spec.Resources
	if len(r.Requests) == 0 && len(r.Limits) == 0 {
		return
	}
	limits := containerLimits(pod)
	for name, limit := range limits {
		if _, requested := r.Requests[name]; isHugePages(name) && !requested {
			setMissing(&r.Limits, name, limit)
		}
	}
	for name, request := range containerRequests(pod) {
		if name == corev1.ResourceCPU || name == corev1.ResourceMemory {
			setMissing(&r.Requests, name, request)
		}
	}
	for name, limit := range r.Limits {
		if isOfPods(name) {
			setMissing(&r.Requests, name, limit)
		}
	}
	for name, request := range r.Requests {
		if limit, ok := limits[name]; ok && isOfPods(name) && allLimit(pod, name) {
			setMissing(&r.Limits, name, larger(limit, request))
		}
	}
}

func larger(a, b resource.Quantity) resource.Quantity {
	if a.Cmp(b) < 0 {
		return b
	}
	return a
}

func setMissing(list *corev1.ResourceList, name corev1.ResourceName, quantity resource.Quantity) {
	if _, ok := (*list)[name]; ok {
		return
	}
	if *list == nil {
		*list = corev1.ResourceList{}
	}
	(*list)[name] = quantity.DeepCopy()
}

// isOfPods says whether a pod as a whole can ask for a resource.
func isOfPods(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || isHugePages(name)
}

func isHugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

func allLimit(pod *corev1.Pod, name corev1.ResourceName) bool {
	for c := range lifecycle.Containers(pod) {
		if _, ok := c.Resources.Limits[name]; !ok {
			return false
		}
	}
	return true
}

func containerRequests(pod *corev1.Pod) corev1.ResourceList {
	return total(pod, func(c *corev1.Container) corev1.ResourceList { return c.Resources.Requests })
}

func containerLimits(pod *corev1.Pod) corev1.ResourceList {
	return total(pod, func(c *corev1.Container) corev1.ResourceList { return c.Resources.Limits })
}

// total is what the containers need at the worst: all that run beside each other, or an init container and the sidecars before it.
func total(pod *corev1.Pod, of func(*corev1.Container) corev1.ResourceList) corev1.ResourceList {
	sidecars, peak, sum := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	for c, kind := range lifecycle.Containers(pod) {
		switch kind {
		case lifecycle.Init:
			grow(peak, of(c), sidecars)
		case lifecycle.Sidecar:
			sidecars = plus(sidecars, of(c))
			grow(peak, sidecars, nil)
		case lifecycle.App:
			sum = plus(sum, of(c))
		}
	}
	sum = plus(sum, sidecars)
	grow(sum, peak, nil)
	return sum
}

func plus(a, b corev1.ResourceList) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, list := range []corev1.ResourceList{a, b} {
		for name, quantity := range list {
			q := sum[name]
			q.Add(quantity)
			sum[name] = q
		}
	}
	return sum
}

// grow raises what list has to a+b where that is more.
func grow(list, a, b corev1.ResourceList) {
	for name, quantity := range plus(a, b) {
		if have, ok := list[name]; !ok || have.Cmp(quantity) < 0 {
			list[name] = quantity
		}
	}
}

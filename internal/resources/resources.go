// Package resources adds up what the containers of a pod ask for and may use.
package resources

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podmill/podmill/internal/lifecycle"
)

// Limits is what a container is limited to.
func Limits(r corev1.ResourceRequirements) corev1.ResourceList { return r.Limits }

// MemoryLimit returns a pod's memory limit in bytes, 0 if some container has none.
func MemoryLimit(pod *corev1.Pod) int64 {
	limits, bounded := Total(pod, Limits)
	if !bounded[corev1.ResourceMemory] {
		return 0
	}
	return limits.Memory().Value()
}

// Total adds up what of says of a pod's containers for CPU and memory, and tells of which resources every container has some. What the pod says as a whole (KEP-2837) stands for its
// containers; its overhead is added to what is not unlimited. Init containers run before the others, so that the pod needs the larger of
// both; sidecars run beside all that come after them.
func Total(pod *corev1.Pod, of func(corev1.ResourceRequirements) corev1.ResourceList) (sum corev1.ResourceList, every map[corev1.ResourceName]bool) {
	sum, every = corev1.ResourceList{}, map[corev1.ResourceName]bool{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		sum[name], every[name] = need(pod, name, of)
	}
	return sum, every
}

// Requests adds up what a pod asks for, of every resource that it names, by the rules of [Total].
func Requests(pod *corev1.Pod) corev1.ResourceList {
	requests := func(r corev1.ResourceRequirements) corev1.ResourceList { return r.Requests }
	sum := corev1.ResourceList{}
	add := func(list corev1.ResourceList) {
		for name := range list {
			sum[name], _ = need(pod, name, requests)
		}
	}
	for c := range lifecycle.Containers(pod) {
		add(c.Resources.Requests)
	}
	if pod.Spec.Resources != nil {
		add(pod.Spec.Resources.Requests)
	}
	add(pod.Spec.Overhead)
	return sum
}

// need is how much of a resource a pod needs, and whether every container says how much.
func need(pod *corev1.Pod, name corev1.ResourceName, of func(corev1.ResourceRequirements) corev1.ResourceList) (sum resource.Quantity, every bool) {
	sum, every = OfContainers(pod, name, of)
	sum.Add(pod.Spec.Overhead[name])
	return sum, every
}

// OfContainers is what [Total] gives of one resource, without the pod's overhead.
func OfContainers(
	pod *corev1.Pod, name corev1.ResourceName, of func(corev1.ResourceRequirements) corev1.ResourceList,
) (sum resource.Quantity, every bool) {
	var apps, sidecars, peak resource.Quantity
	every = true
	for c, kind := range lifecycle.Containers(pod) {
		q, ok := of(c.Resources)[name]
		every = every && ok && !q.IsZero()
		switch kind {
		case lifecycle.App:
			apps.Add(q)
		case lifecycle.Sidecar:
			sidecars.Add(q)
			peak = larger(peak, sidecars)
		case lifecycle.Init:
			q.Add(sidecars)
			peak = larger(peak, q)
		}
	}
	apps.Add(sidecars)
	sum = larger(apps, peak)
	if pod.Spec.Resources != nil {
		if q, ok := of(*pod.Spec.Resources)[name]; ok && !q.IsZero() {
			sum, every = q.DeepCopy(), true
		}
	}
	return sum, every
}

func larger(a, b resource.Quantity) resource.Quantity {
	if a.Cmp(b) < 0 {
		return b.DeepCopy()
	}
	return a.DeepCopy()
}

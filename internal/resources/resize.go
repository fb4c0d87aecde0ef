package resources

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podmill/podmill/internal/lifecycle"
)

// Resizable returns the names of what can be resized in a running container (KEP-1287).
func Resizable() []corev1.ResourceName {
	return []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
}

// Differs reports that two containers may use a different amount of a resource. A limit stands for a request that is missing.
func Differs(a, b corev1.ResourceRequirements, name corev1.ResourceName) bool {
	limit, asks := a.Limits[name], request(a, name)
	return limit.Cmp(b.Limits[name]) != 0 || asks.Cmp(request(b, name)) != 0
}

// SameSize reports that two containers may use the same of what can be resized.
func SameSize(a, b corev1.ResourceRequirements) bool {
	return !slices.ContainsFunc(Resizable(), func(name corev1.ResourceName) bool { return Differs(a, b, name) })
}

func request(r corev1.ResourceRequirements, name corev1.ResourceName) resource.Quantity {
	if q, ok := r.Requests[name]; ok {
		return q
	}
	return r.Limits[name]
}

// Resized returns the pod with other sizes of its containers: those that of gives, of what can be resized. The pod itself is left alone, and returned where nothing
// is different. Init containers that run before the others are not asked for.
func Resized(pod *corev1.Pod, of func(c *corev1.Container) (size corev1.ResourceRequirements, ok bool)) *corev1.Pod {
	out := pod
	for c, kind := range lifecycle.Containers(pod) {
		if kind == lifecycle.Init {
			continue
		}
		size, ok := of(c)
		if !ok || SameSize(c.Resources, size) {
			continue
		}
		if out == pod {
			copied := *pod
			copied.Spec.Containers, copied.Spec.InitContainers = slices.Clone(pod.Spec.Containers), slices.Clone(pod.Spec.InitContainers)
			out = &copied
		}
		Container(out, c.Name).Resources = sized(c.Resources, size)
	}
	return out
}

// Container returns a pod's container of that name that may be resized, nil if there is none.
func Container(pod *corev1.Pod, name string) *corev1.Container {
	for c, kind := range lifecycle.Containers(pod) {
		if c.Name == name && kind != lifecycle.Init {
			return c
		}
	}
	return nil
}

// sized returns r with another size.
func sized(r, size corev1.ResourceRequirements) corev1.ResourceRequirements {
	r.Requests, r.Limits = sizedList(r.Requests, size.Requests), sizedList(r.Limits, size.Limits)
	return r
}

func sizedList(list, size corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, q := range list {
		if !slices.Contains(Resizable(), name) {
			out[name] = q
		}
	}
	for _, name := range Resizable() {
		if q, ok := size[name]; ok {
			out[name] = q
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// Larger returns what two sizes of a container need both: the larger of each request, and of each limit, where none is the largest.
func Larger(a, b corev1.ResourceRequirements) corev1.ResourceRequirements {
	out := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	for _, name := range Resizable() {
		if q := larger(request(a, name), request(b, name)); !q.IsZero() {
			out.Requests[name] = q
		}
		x, y := a.Limits[name], b.Limits[name]
		if !x.IsZero() && !y.IsZero() {
			out.Limits[name] = larger(x, y)
		}
	}
	return out
}

package downward

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Resource returns the value of a resourceFieldRef: a limit or request of the container named there, or else of self, in units of the
// divisor, rounded up. A container without a limit has its pod's, or else all that the node has for pods.
func Resource(pod *corev1.Pod, self string, ref *corev1.ResourceFieldSelector, allocatable corev1.ResourceList) (string, error) {
	container := ref.ContainerName
	if container == "" {
		container = self
	}
	c := containerOf(pod, container)
	if c == nil {
		return "", fmt.Errorf("resourceFieldRef: no container %q", container)
	}
	list, name, _ := strings.Cut(ref.Resource, ".")
	if !measurable(corev1.ResourceName(name)) || list != "limits" && list != "requests" {
		return "", fmt.Errorf("resourceFieldRef %q is not supported", ref.Resource)
	}
	quantity, found := c.Resources.Requests[corev1.ResourceName(name)], true
	if list == "limits" {
		quantity, found = limit(pod, c, corev1.ResourceName(name), allocatable)
	}
	if !found {
		return "", fmt.Errorf("resourceFieldRef %s: container %s has no limit, and what the node has for pods is not known", ref.Resource, c.Name)
	}
	return divide(quantity, ref.Divisor, corev1.ResourceName(name))
}

func containerOf(pod *corev1.Pod, name string) *corev1.Container {
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

func measurable(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return true
	}
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

func limit(pod *corev1.Pod, c *corev1.Container, name corev1.ResourceName, allocatable corev1.ResourceList) (resource.Quantity, bool) {
	lists := []corev1.ResourceList{c.Resources.Limits, nil, allocatable}
	if pod.Spec.Resources != nil {
		lists[1] = pod.Spec.Resources.Limits
	}
	for _, list := range lists {
		if q, ok := list[name]; ok && !q.IsZero() {
			return q, true
		}
	}
	return resource.Quantity{}, strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

func divide(quantity, divisor resource.Quantity, name corev1.ResourceName) (string, error) {
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	value, unit := quantity.Value(), divisor.Value()
	if name == corev1.ResourceCPU {
		value, unit = quantity.MilliValue(), divisor.MilliValue()
	}
	if divisor.Sign() < 0 || unit == 0 {
		return "", fmt.Errorf("resourceFieldRef: divisor %s is not supported", divisor.String())
	}
	n := value / unit
	if value%unit > 0 {
		n++
	}
	return strconv.FormatInt(n, 10), nil
}

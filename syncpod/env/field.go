package env

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// field returns the value of a fieldRef: those that the API allows in an environment.
func (r *resolver) field(path string) (string, error) {
	pod := r.Pod
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.podIP":
		return address(path, r.PodIPs, 1)
	case "status.podIPs":
		return address(path, r.PodIPs, len(r.PodIPs))
	case "status.hostIP":
		return address(path, r.HostIPs, 1)
	case "status.hostIPs":
		return address(path, r.HostIPs, len(r.HostIPs))
	}
	if key, ok := subscript(path, "metadata.labels"); ok {
		return pod.Labels[key], nil
	}
	if key, ok := subscript(path, "metadata.annotations"); ok {
		return pod.Annotations[key], nil
	}
	return "", fmt.Errorf("fieldRef %q is not supported", path)
}

func address(path string, ips []string, n int) (string, error) {
	if len(ips) == 0 {
		return "", fmt.Errorf("fieldRef %s: no address is known", path)
	}
	return strings.Join(ips[:n], ","), nil
}

// subscript returns k of field['k'].
func subscript(path, field string) (key string, ok bool) {
	rest, ok := strings.CutPrefix(path, field+"['")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(rest, "']")
}

// resource returns the value of a resourceFieldRef: a limit or request in units of the divisor, rounded up. A container without a limit
// has its pod's, or else all that the node has for pods.
func (r *resolver) resource(ref *corev1.ResourceFieldSelector) (string, error) {
	c := r.Container
	if ref.ContainerName != "" && ref.ContainerName != c.Name {
		if c = containerOf(r.Pod, ref.ContainerName); c == nil {
			return "", fmt.Errorf("resourceFieldRef: no container %q", ref.ContainerName)
		}
	}
	list, name, _ := strings.Cut(ref.Resource, ".")
	if !measurable(corev1.ResourceName(name)) || list != "limits" && list != "requests" {
		return "", fmt.Errorf("resourceFieldRef %q is not supported", ref.Resource)
	}
	quantity, found := c.Resources.Requests[corev1.ResourceName(name)], true
	if list == "limits" {
		quantity, found = r.limit(c, corev1.ResourceName(name))
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

func (r *resolver) limit(c *corev1.Container, name corev1.ResourceName) (resource.Quantity, bool) {
	lists := []corev1.ResourceList{c.Resources.Limits, nil, r.Allocatable}
	if r.Pod.Spec.Resources != nil {
		lists[1] = r.Pod.Spec.Resources.Limits
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

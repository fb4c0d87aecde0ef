// Package downward gives what a pod may know of itself, in environments and in volumes.
package downward

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Metadata returns the value of a fieldRef to one piece of a pod's metadata: its name, namespace or UID, or one label or annotation,
// which is empty if the pod has none of that key.
func Metadata(pod *corev1.Pod, path string) (value string, ok bool) {
	switch path {
	case "metadata.name":
		return pod.Name, true
	case "metadata.namespace":
		return pod.Namespace, true
	case "metadata.uid":
		return string(pod.UID), true
	}
	if key, ok := subscript(path, "metadata.labels"); ok {
		return pod.Labels[key], true
	}
	if key, ok := subscript(path, "metadata.annotations"); ok {
		return pod.Annotations[key], true
	}
	return "", false
}

// subscript returns k of field['k'].
func subscript(path, field string) (key string, ok bool) {
	rest, ok := strings.CutPrefix(path, field+"['")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(rest, "']")
}

package cgroup

import corev1 "k8s.io/api/core/v1"

// Reserved is what is reserved for a pod of a class.
func Reserved(class corev1.PodQOSClass, pod *corev1.Pod) (l Limits) {
	l.reserve(class, pod)
	return l
}

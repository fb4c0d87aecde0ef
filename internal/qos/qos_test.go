package qos

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func resources(requests, limits map[corev1.ResourceName]string) corev1.ResourceRequirements {
	list := func(m map[corev1.ResourceName]string) corev1.ResourceList {
		out := corev1.ResourceList{}
		for name, q := range m {
			out[name] = resource.MustParse(q)
		}
		return out
	}
	return corev1.ResourceRequirements{Requests: list(requests), Limits: list(limits)}
}

func TestClass(t *testing.T) {
	type m = map[corev1.ResourceName]string
	full := resources(m{"cpu": "1", "memory": "1Gi"}, m{"cpu": "1000m", "memory": "1024Mi"})
	limits := resources(nil, m{"cpu": "1", "memory": "1Gi"})
	some := resources(m{"cpu": "1"}, nil)
	none := resources(m{"cpu": "0", "example.com/device": "1"}, nil)
	for _, tc := range []struct {
		name       string
		pod        *corev1.ResourceRequirements
		init, apps []corev1.ResourceRequirements
		want       corev1.PodQOSClass
	}{
		{name: "nothing asked", apps: []corev1.ResourceRequirements{none}, want: corev1.PodQOSBestEffort},
		{name: "requests equal limits", apps: []corev1.ResourceRequirements{full, limits}, want: corev1.PodQOSGuaranteed},
		{name: "one container asks for nothing", apps: []corev1.ResourceRequirements{full, none}, want: corev1.PodQOSBurstable},
		{name: "request without limit", apps: []corev1.ResourceRequirements{some}, want: corev1.PodQOSBurstable},
		{name: "an init container counts", init: []corev1.ResourceRequirements{some}, apps: []corev1.ResourceRequirements{full}, want: corev1.PodQOSBurstable},
		{name: "the pod's own resources win", pod: &full, apps: []corev1.ResourceRequirements{some}, want: corev1.PodQOSGuaranteed},
		{name: "request below limit", apps: []corev1.ResourceRequirements{resources(m{"cpu": "1", "memory": "1Gi"}, m{"cpu": "2", "memory": "1Gi"})}, want: corev1.PodQOSBurstable},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Resources: tc.pod}}
		for _, r := range tc.init {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Resources: r})
		}
		for _, r := range tc.apps {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Resources: r})
		}
		if got := Class(pod); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

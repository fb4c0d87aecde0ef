package resources

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestMemoryLimit(t *testing.T) {
	container := func(limit string) corev1.Container {
		c := corev1.Container{}
		if limit != "" {
			c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)}
		}
		return c
	}
	sidecar := container("10")
	always := corev1.ContainerRestartPolicyAlways
	sidecar.RestartPolicy = &always
	for _, tc := range []struct {
		name string
		init []corev1.Container
		apps []corev1.Container
		want int64
	}{
		{"sum", nil, []corev1.Container{container("1"), container("2")}, 3},
		{"one without", nil, []corev1.Container{container("1"), container("")}, 0},
		{"a larger init container", []corev1.Container{container("7")}, []corev1.Container{container("1"), container("2")}, 7},
		{"a sidecar counts with both", []corev1.Container{sidecar, container("7")}, []corev1.Container{container("1")}, 17},
		{"a sidecar after the init container", []corev1.Container{container("7"), sidecar}, []corev1.Container{container("1")}, 11},
	} {
		if got := MemoryLimit(&corev1.Pod{Spec: corev1.PodSpec{InitContainers: tc.init, Containers: tc.apps}}); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}

package downward

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestMetadata(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "a", Namespace: "ns", UID: "u", Labels: map[string]string{"x/y": "l"}, Annotations: map[string]string{"k": "v"},
	}}
	for path, want := range map[string]string{
		"metadata.name": "a", "metadata.namespace": "ns", "metadata.uid": "u", "metadata.labels['x/y']": "l", "metadata.annotations['k']": "v", "metadata.labels['none']": "",
	} {
		if got, ok := Metadata(pod, path); !ok || got != want {
			t.Errorf("Metadata(%s) = %q, %v, want %q", path, got, ok, want)
		}
	}
	for _, path := range []string{"metadata.labels", "metadata.labels['x", "spec.nodeName", ""} {
		if got, ok := Metadata(pod, path); ok {
			t.Errorf("Metadata(%s) = %q, want none", path, got)
		}
	}
}

func TestResource(t *testing.T) {
	list := func(name corev1.ResourceName, q string) corev1.ResourceList {
		return corev1.ResourceList{name: resource.MustParse(q)}
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Name: "c", Resources: corev1.ResourceRequirements{Limits: list("cpu", "1500m"), Requests: list("memory", "1Mi")}},
	}}}
	for _, tc := range []struct{ resource, divisor, container, want string }{
		{"limits.cpu", "", "", "2"},      // rounded up
		{"limits.cpu", "1m", "", "1500"}, // in units of the divisor
		{"requests.memory", "", "c", "1048576"},
		{"limits.memory", "1Gi", "", "4"},     // the node's
		{"limits.hugepages-2Mi", "", "", "0"}, // nobody has any unless it is said
		{"limits.ephemeral-storage", "", "", "is not known"},
		{"limits.gpu", "", "", "is not supported"},
		{"cpu", "", "", "is not supported"},
		{"limits.cpu", "-1", "", "divisor -1"},
		{"limits.cpu", "", "gone", `no container "gone"`},
	} {
		ref := &corev1.ResourceFieldSelector{Resource: tc.resource, ContainerName: tc.container}
		if tc.divisor != "" {
			ref.Divisor = resource.MustParse(tc.divisor)
		}
		got, err := Resource(pod, "c", ref, list("memory", "4Gi"))
		if err != nil {
			got = err.Error()
		}
		if got != tc.want && (err == nil || !strings.Contains(got, tc.want)) {
			t.Errorf("%s / %s of %q = %q, want %q", tc.resource, tc.divisor, tc.container, got, tc.want)
		}
	}
}

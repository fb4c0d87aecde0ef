package podspec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func parse(t testing.TB, text string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(text), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// TestDefault shows what is filled in: in each file of testdata/default a pod, and after the line what becomes of it.
func TestDefault(t *testing.T) {
	files, err := filepath.Glob("testdata/default/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			before, after, ok := strings.Cut(string(text), "---\n")
			if !ok {
				t.Fatal("there is no line between before and after")
			}
			pod := parse(t, before)
			for _, which := range []string{"once", "twice"} {
				Default(pod)
				got, err := yaml.Marshal(map[string]any{"spec": pod.Spec})
				if err != nil {
					t.Fatal(err)
				}
				want := parse(t, after)
				wanted, err := yaml.Marshal(map[string]any{"spec": want.Spec})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(wanted), string(got)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", which, diff)
				}
			}
		})
	}
}

// TestDefaultSharesNothing shows that what is copied from limits to requests is not the same quantity.
func TestDefaultSharesNothing(t *testing.T) {
	pod := parse(t, "spec: {resources: {limits: {memory: 5Gi}}, containers: [{name: a, image: a, resources: {limits: {memory: 1Gi}}}]}")
	Default(pod)
	for _, r := range []*corev1.ResourceRequirements{pod.Spec.Resources, &pod.Spec.Containers[0].Resources} {
		limit := r.Limits[corev1.ResourceMemory]
		limit.Add(limit)
		r.Limits[corev1.ResourceMemory] = limit
	}
	if got := pod.Spec.Containers[0].Resources.Requests.Memory().String(); got != "1Gi" {
		t.Errorf("the container's request is %s", got)
	}
	if got := pod.Spec.Resources.Requests.Memory().String(); got != "1Gi" {
		t.Errorf("the pod's request is %s", got)
	}
}

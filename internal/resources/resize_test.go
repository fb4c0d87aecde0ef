package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func sizes(request, limit string) corev1.ResourceRequirements {
	r := corev1.ResourceRequirements{}
	if request != "" {
		r.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(request)}
	}
	if limit != "" {
		r.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(limit)}
	}
	return r
}

func TestSameSize(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b corev1.ResourceRequirements
		want bool
	}{
		"nothing":                      {sizes("", ""), sizes("", ""), true},
		"written otherwise":            {sizes("1000m", "2"), sizes("1", "2000m"), true},
		"a limit stands for a request": {sizes("", "2"), sizes("2", "2"), true},
		"another request":              {sizes("1", "2"), sizes("2", "2"), false},
		"no limit any more":            {sizes("1", "2"), sizes("1", ""), false},
	} {
		if got := SameSize(tc.a, tc.b); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Only what can be resized is, and what was handed in stays as it is.
func TestResized(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	other := sizes("1", "1")
	other.Limits["example.com/gpu"] = resource.MustParse("1")
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "init", Resources: sizes("1", "1")}, {Name: "side", RestartPolicy: &always, Resources: sizes("1", "1")}},
		Containers:     []corev1.Container{{Name: "web", Resources: other}, {Name: "db", Resources: sizes("1", "1")}},
	}}
	before := pod.DeepCopy()
	if same := Resized(pod, func(c *corev1.Container) (corev1.ResourceRequirements, bool) { return sizes("1000m", "1"), true }); same != pod {
		t.Error("a pod was copied that is the same")
	}
	got := Resized(pod, func(c *corev1.Container) (corev1.ResourceRequirements, bool) { return sizes("2", "3"), c.Name != "db" })
	want := pod.DeepCopy()
	want.Spec.InitContainers[1].Resources = sizes("2", "3")
	want.Spec.Containers[0].Resources = sizes("2", "3")
	want.Spec.Containers[0].Resources.Limits["example.com/gpu"] = resource.MustParse("1")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, pod); diff != "" {
		t.Errorf("the pod that was handed in has changed:\n%s", diff)
	}
}

func TestLarger(t *testing.T) {
	if diff := cmp.Diff(sizes("2", "3"), Larger(sizes("2", "2"), sizes("1", "3"))); diff != "" {
		t.Error(diff)
	}
	if got := Larger(sizes("1", ""), sizes("1", "3")); len(got.Limits) > 0 {
		t.Errorf("what has no limit is larger than what has one: %+v", got)
	}
}

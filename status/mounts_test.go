package status_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	. "github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/status"
)

// Of a mount that is read-only it is told whether what is mounted below it is so too (KEP-3857), and that stays when the container has gone.
func TestMountsOfAContainer(t *testing.T) {
	mount := func(name, path string, readOnly bool) ContainerOption {
		return func(c *corev1.Container) {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path, ReadOnly: readOnly})
		}
	}
	pod := Pod("shop/cart", Container("web", "img:1", mount("a", "/a", false), mount("b", "/b", true), mount("c", "/c/", true)), Container("new", "img:1", mount("a", "/a", false)))
	enabled, disabled := corev1.RecursiveReadOnlyEnabled, corev1.RecursiveReadOnlyDisabled
	want := []corev1.VolumeMountStatus{
		{Name: "a", MountPath: "/a"}, {Name: "b", MountPath: "/b", ReadOnly: true, RecursiveReadOnly: &disabled},
		{Name: "c", MountPath: "/c/", ReadOnly: true, RecursiveReadOnly: &enabled},
	}
	seen := &podmill.RuntimePod{Containers: []podmill.Container{{ID: "c", Name: "web", State: podmill.StateRunning, ReadOnlyBelow: []string{"/c"}}}}
	got := status.Generate(status.Input{Pod: pod, Seen: seen}, time.Unix(100, 0))
	for _, s := range []corev1.PodStatus{got, status.Generate(status.Input{Pod: pod, Last: &got}, time.Unix(200, 0))} {
		if diff := cmp.Diff(want, s.ContainerStatuses[0].VolumeMounts); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if s.ContainerStatuses[1].VolumeMounts != nil {
			t.Errorf("of a container that was never there: %+v", s.ContainerStatuses[1].VolumeMounts)
		}
	}
}

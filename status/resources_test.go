package status_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podmill/podmill"
	. "github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/status"
)

// A container tells what it runs with. That its spec has changed since is not passed over: the pod says that it is not resized, until it is.
func TestRunningContainersAreNotResized(t *testing.T) {
	limit := func(memory string) ContainerOption {
		return func(c *corev1.Container) {
			c.Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse(memory)}
		}
	}
	started := func(resources string) *podmill.RuntimePod {
		c := podmill.Container{ID: "c", SandboxID: "s", Name: "web", State: podmill.StateRunning, StartedAt: time.Unix(1, 0), Annotations: map[string]string{}}
		if resources != "" {
			c.Annotations[podmill.AnnotationContainerResources] = resources
		}
		return &podmill.RuntimePod{Sandboxes: []podmill.Sandbox{{ID: "s", Ready: true}}, Containers: []podmill.Container{c}}
	}
	const small = `{"limits":{"cpu":"0.5","memory":"64Mi"},"requests":{"cpu":"500m","memory":"65536Ki"}}`
	var last *corev1.PodStatus
	for _, tc := range []struct {
		name, memory, resources string
		termination             *podmill.Termination
		want                    string
	}{
		{name: "as it was started", memory: "64Mi", resources: small},
		{name: "more", memory: "128Mi", resources: small, want: "container web keeps the memory that it was started with"},
		{name: "less", memory: "32Mi", resources: small, want: "container web keeps the memory"},
		{name: "it ends", memory: "32Mi", resources: small, termination: &podmill.Termination{}},
		{name: "nothing before", memory: "32Mi", resources: "{}", want: "container web keeps the cpu"},
		{name: "started again", memory: "64Mi", resources: small},
		{name: "somebody else's container", memory: "64Mi"},
		{name: "what nobody can read", memory: "64Mi", resources: "64Mi"},
	} {
		pod := Pod("shop/cart", Container("web", "img:1", limit(tc.memory)))
		got := status.Generate(status.Input{Pod: pod, Seen: started(tc.resources), Last: last, Progress: podmill.Progress{Termination: tc.termination}}, time.Unix(100, 0))
		last = &got
		var pending *corev1.PodCondition
		for i := range got.Conditions {
			if got.Conditions[i].Type == corev1.PodResizePending {
				pending = &got.Conditions[i]
			}
		}
		switch {
		case tc.want == "" && pending != nil:
			t.Errorf("%s: %+v", tc.name, pending)
		case tc.want == "":
		case pending == nil || pending.Status != corev1.ConditionTrue || pending.Reason != corev1.PodReasonInfeasible || !strings.HasPrefix(pending.Message, tc.want):
			t.Errorf("%s: %+v, want %s", tc.name, pending, tc.want)
		}
		c := got.ContainerStatuses[0]
		if told := c.Resources != nil && c.Resources.Limits.Memory().String() == "64Mi" && c.AllocatedResources.Cpu().String() == "500m"; told != (tc.resources == small) {
			t.Errorf("%s: it is said to run with %+v, of which %v are its own", tc.name, c.Resources, c.AllocatedResources)
		}
	}
}

package status_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podmill/podmill"
	. "github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/status"
)

func listOf(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}
}

// A container tells what it has and what it was allocated: what it was started with, or was given since, and of that what the runtime says.
func TestResourcesOfAContainer(t *testing.T) {
	const started = `{"limits":{"cpu":"500m","memory":"64Mi"},"requests":{"cpu":"250m","memory":"32Mi"}}`
	given := corev1.ResourceRequirements{Requests: listOf("1", "64Mi"), Limits: listOf("2", "128Mi")}
	for name, tc := range map[string]struct {
		annotation        string
		seen              *podmill.ContainerResources
		resize            *podmill.ResizeProgress
		has, may, request string // CPU requested and limit, memory limit; what was allocated of CPU
	}{
		"as it was started":      {annotation: started, has: "250m", may: "500m 64Mi", request: "250m"},
		"allocated, not given":   {annotation: started, resize: &podmill.ResizeProgress{Allocated: map[string]corev1.ResourceRequirements{"web": given}}, has: "250m", may: "500m 64Mi", request: "1"},
		"given":                  {annotation: started, resize: &podmill.ResizeProgress{Allocated: map[string]corev1.ResourceRequirements{"web": given}, Actual: map[string]corev1.ResourceRequirements{"c": given}}, has: "1", may: "2 128Mi", request: "1"},
		"given to another":       {annotation: started, resize: &podmill.ResizeProgress{Actual: map[string]corev1.ResourceRequirements{"d": given}}, has: "250m", may: "500m 64Mi", request: "250m"},
		"the runtime agrees":     {annotation: started, seen: &podmill.ContainerResources{CPURequest: 250, CPULimit: 500, MemoryLimit: 64 << 20}, has: "250m", may: "500m 64Mi", request: "250m"},
		"the runtime does not":   {annotation: started, seen: &podmill.ContainerResources{CPURequest: 100, CPULimit: 200, MemoryLimit: 32 << 20}, has: "100m", may: "200m 32Mi", request: "250m"},
		"less than the kernel's": {annotation: `{"limits":{"cpu":"5m"},"requests":{"cpu":"1m"}}`, seen: &podmill.ContainerResources{CPULimit: 10}, has: "1m", may: "5m 0", request: "1m"},
		"nothing asked for":      {annotation: "{}", seen: &podmill.ContainerResources{CPULimit: 10}, has: "0", may: "0 0", request: "0"},
	} {
		c := podmill.Container{
			ID: "c", SandboxID: "s", Name: "web", State: podmill.StateRunning, StartedAt: time.Unix(1, 0), Resources: tc.seen,
			Annotations: map[string]string{podmill.AnnotationContainerResources: tc.annotation},
		}
		seen := &podmill.RuntimePod{Sandboxes: []podmill.Sandbox{{ID: "s", Ready: true}}, Containers: []podmill.Container{c}}
		got := status.Generate(status.Input{
			Pod: Pod("shop/cart", Container("web", "img:1")), Seen: seen, Progress: podmill.Progress{Resize: tc.resize},
		}, time.Unix(100, 0)).ContainerStatuses[0]
		if got.Resources == nil {
			t.Errorf("%s: nothing is told", name)
			continue
		}
		has, may := got.Resources.Requests.Cpu().String(), got.Resources.Limits.Cpu().String()+" "+got.Resources.Limits.Memory().String()
		if has != tc.has || may != tc.may || got.AllocatedResources.Cpu().String() != tc.request {
			t.Errorf("%s: it has %s and may have %s, allocated %s; want %s, %s, %s", name, has, may, got.AllocatedResources.Cpu(), tc.has, tc.may, tc.request)
		}
	}
}

// Of somebody else's container, and of what nobody can read, nothing is told.
func TestResourcesThatNobodyKnows(t *testing.T) {
	for _, annotations := range []map[string]string{nil, {podmill.AnnotationContainerResources: "64Mi"}} {
		seen := &podmill.RuntimePod{Containers: []podmill.Container{{ID: "c", Name: "web", State: podmill.StateRunning, Annotations: annotations}}}
		got := status.Generate(status.Input{Pod: Pod("shop/cart", Container("web", "img:1")), Seen: seen}, time.Unix(100, 0)).ContainerStatuses[0]
		if got.Resources != nil || got.AllocatedResources != nil {
			t.Errorf("%v: %+v", annotations, got)
		}
	}
}

// A resize is told with the conditions of KEP-1287, each with the generation that it is about, while there is something to say.
func TestResizeConditions(t *testing.T) {
	type told struct {
		Type            corev1.PodConditionType
		Reason, Message string
		Generation      int64
	}
	for name, tc := range map[string]struct {
		progress    podmill.ResizeProgress
		termination *podmill.Termination
		want        []told
	}{
		"over":        {},
		"deferred":    {progress: podmill.ResizeProgress{Pending: "Deferred", PendingMessage: "later"}, want: []told{{corev1.PodResizePending, "Deferred", "later", 5}}},
		"infeasible":  {progress: podmill.ResizeProgress{Pending: "Infeasible", PendingMessage: "never"}, want: []told{{corev1.PodResizePending, "Infeasible", "never", 5}}},
		"in progress": {progress: podmill.ResizeProgress{InProgress: true, Generation: 4}, want: []told{{corev1.PodResizeInProgress, "", "", 4}}},
		"it fails":    {progress: podmill.ResizeProgress{InProgress: true, Generation: 4, Error: "no"}, want: []told{{corev1.PodResizeInProgress, "Error", "no", 4}}},
		"both": {progress: podmill.ResizeProgress{Pending: "Deferred", PendingMessage: "later", InProgress: true, Generation: 4},
			want: []told{{corev1.PodResizePending, "Deferred", "later", 5}, {corev1.PodResizeInProgress, "", "", 4}}},
		"it ends": {progress: podmill.ResizeProgress{Pending: "Deferred", InProgress: true}, termination: &podmill.Termination{}},
	} {
		pod := Pod("shop/cart", Container("web", "img:1"))
		pod.Generation = 5
		last := &corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodResizePending, Status: "True"}, {Type: corev1.PodResizeInProgress, Status: "True"}}}
		got := status.Generate(status.Input{Pod: pod, Last: last, Progress: podmill.Progress{Resize: &tc.progress, Termination: tc.termination}}, time.Unix(100, 0))
		var all []told
		for _, c := range got.Conditions {
			if c.Type == corev1.PodResizePending || c.Type == corev1.PodResizeInProgress {
				all = append(all, told{c.Type, c.Reason, c.Message, c.ObservedGeneration})
			}
		}
		if diff := cmp.Diff(tc.want, all); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

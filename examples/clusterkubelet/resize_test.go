package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// sizes are what a container requests, with limits of twice that.
func sizes(cpu, memory string) corev1.ResourceRequirements {
	r := corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}, Limits: corev1.ResourceList{}}
	for name, q := range r.Requests {
		q.Add(q)
		r.Limits[name] = q
	}
	return r
}

// resizing is a pod of one container that somebody resizes through the API, as kubectl edit --subresource=resize does.
type resizing struct {
	*cluster
	name   string
	before *corev1.Pod
}

func newResizing(c *cluster, name string, was corev1.ResourceRequirements) *resizing {
	pod := sleeper(name)
	pod.Spec.Containers[0].Resources = was
	c.CreatePod(pod)
	return &resizing{c, name, c.reaches(name, "is ready", ready)}
}

func (r *resizing) resize(to corev1.ResourceRequirements) {
	r.t.Helper()
	if err := r.tryResize(to); err != nil {
		r.t.Fatal(err)
	}
}

func (r *resizing) tryResize(to corev1.ResourceRequirements) error {
	r.t.Helper()
	return r.TryPatch("pods", r.name, map[string]any{"spec": map[string]any{"containers": []map[string]any{{"name": "main", "resources": to}}}}, "resize")
}

// pending waits until the resize is pending for a reason, and returns why.
func (r *resizing) pending(reason string) string {
	r.t.Helper()
	pod := r.reaches(r.name, "says that its resize is "+reason, func(pod *corev1.Pod) bool {
		c := conditionOf(pod, corev1.PodResizePending)
		return c != nil && c.Reason == reason && c.ObservedGeneration == pod.Generation
	})
	return conditionOf(pod, corev1.PodResizePending).Message
}

// has waits until the API says that the container has what it wants, and looks at what it has: in the kernel, and that it is the one that it was.
func (r *resizing) has(want corev1.ResourceRequirements) {
	r.t.Helper()
	pod := r.reaches(r.name, "has "+sizeOf(want), func(pod *corev1.Pod) bool {
		s := pod.Status.ContainerStatuses[0]
		return pod.Status.ObservedGeneration == pod.Generation && s.Resources != nil && sizeOf(*s.Resources) == sizeOf(want) &&
			sizeOf(corev1.ResourceRequirements{Requests: s.AllocatedResources, Limits: want.Limits}) == sizeOf(want) &&
			conditionOf(pod, corev1.PodResizePending) == nil && conditionOf(pod, corev1.PodResizeInProgress) == nil
	})
	r.same(pod, want)
}

// same fails unless the container was not restarted and has this in the kernel.
func (r *resizing) same(pod *corev1.Pod, want corev1.ResourceRequirements) {
	r.t.Helper()
	if is, was := pod.Status.ContainerStatuses[0], r.before.Status.ContainerStatuses[0]; is.ContainerID != was.ContainerID || is.RestartCount != 0 || !ready(pod) {
		r.t.Errorf("the container was touched: %+v, was %+v", is, was)
	}
	const files = "cpu.shares cpu.cfs_quota_us memory.limit_in_bytes"
	got := strings.Fields(r.sh(pod, "main", "cd /sys/fs/cgroup; cat cpu/cpu.shares cpu/cpu.cfs_quota_us memory/memory.limit_in_bytes"))
	cpu := want.Requests.Cpu().MilliValue()
	if kernel := []string{fmt.Sprint(cpu * 1024 / 1000), fmt.Sprint(2 * cpu * 100), fmt.Sprint(want.Limits.Memory().Value())}; strings.Join(got, " ") != strings.Join(kernel, " ") {
		r.t.Errorf("%s are %v, want %v", files, got, kernel)
	}
}

func sizeOf(r corev1.ResourceRequirements) string {
	return fmt.Sprintf("%dm..%dm %d..%d", r.Requests.Cpu().MilliValue(), r.Limits.Cpu().MilliValue(), r.Requests.Memory().Value(), r.Limits.Memory().Value())
}

func conditionOf(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// A pod is resized through its subresource resize: the kernel has other limits, the container is the same, and the API says what it has and was allocated, and of which generation
// of the pod that is told.
func TestAPodIsResized(t *testing.T) {
	c := newCluster(t)
	c.start()
	was, more, less := sizes("100m", "32Mi"), sizes("250m", "64Mi"), sizes("50m", "16Mi")
	r := newResizing(c, "sized", was)
	r.has(was)
	r.resize(more)
	r.has(more)
	r.resize(less)
	r.has(less)
}

// A pod that asks for more than the node has, as where the node has become smaller while the agent was away (the server lets nobody ask for more than the Node says), is told that it is
// Infeasible, and is left as it is. The next resize is a new chance.
func TestAResizeIsInfeasible(t *testing.T) {
	c := newCluster(t)
	c.start()
	was, less := sizes("100m", "32Mi"), sizes("50m", "16Mi")
	r := newResizing(c, "sized", was)
	c.signal(os.Kill)
	c.Patch("nodes", c.Node, map[string]any{"status": map[string]any{"allocatable": corev1.ResourceList{"cpu": resource.MustParse("2000")}}}, "status")
	c.Eventually("the server takes the node for larger than it is", func() bool { return r.tryResize(sizes("1000", "32Mi")) == nil })
	c.start()
	if why := r.pending(corev1.PodReasonInfeasible); !strings.HasPrefix(why, "Node didn't have enough capacity: cpu, requested: 1000000, capacity: ") {
		t.Errorf("it is infeasible: %s", why)
	}
	r.same(c.Pod("sized"), was)
	r.resize(less)
	r.has(less)
}

// A resize waits while other pods have what it needs, over a restart of the agent, and is carried out when one has gone.
func TestAResizeIsDeferred(t *testing.T) {
	c := newCluster(t)
	c.start()
	was, more := sizes("100m", "32Mi"), sizes("300m", "32Mi")
	r := newResizing(c, "sized", was)
	node := &corev1.Node{}
	c.Get("nodes", c.Node, node)
	other := sleeper("other")
	other.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": *resource.NewMilliQuantity(node.Status.Allocatable.Cpu().MilliValue()-200, resource.DecimalSI)}
	c.CreatePod(other)
	c.reaches("other", "is ready", ready)
	r.resize(more)
	for range 2 {
		if why := r.pending(corev1.PodReasonDeferred); !strings.HasPrefix(why, "Node didn't have enough resource: cpu, requested: 300, used: ") {
			t.Errorf("it is deferred: %s", why)
		}
		pod := c.Pod("sized")
		if s := pod.Status.ContainerStatuses[0]; s.AllocatedResources.Cpu().MilliValue() != 100 {
			t.Errorf("it was allocated %v", s.AllocatedResources)
		}
		r.same(pod, was)
		c.signal(os.Kill)
		c.start()
	}
	c.Delete("pods", "other", 0)
	r.has(more)
}

// A container that uses more memory than it is to have is not resized, and goes on: the condition says that it is in progress, of which generation, and why it gets no further. When it
// has let go of its memory it is resized.
func TestAResizeThatIsInProgress(t *testing.T) {
	c := newCluster(t)
	c.start()
	was, less := sizes("100m", "40Mi"), sizes("100m", "10Mi")
	r := newResizing(c, "sized", was)
	c.sh(r.before, "main", "dd if=/dev/zero of=/dev/shm/fill bs=1M count=40 2>/dev/null")
	r.resize(less)
	pod := c.reaches("sized", "says why it is not resized", func(pod *corev1.Pod) bool {
		in := conditionOf(pod, corev1.PodResizeInProgress)
		return in != nil && in.Reason == corev1.PodReasonError && in.ObservedGeneration == pod.Generation
	})
	if why := conditionOf(pod, corev1.PodResizeInProgress).Message; !strings.Contains(why, `attempting to set container "main" memory limit (20971520) below current usage`) {
		t.Errorf("it says %s", why)
	}
	if s := pod.Status.ContainerStatuses[0]; s.AllocatedResources.Memory().Value() != 10<<20 || s.Resources.Limits.Memory().Value() != 80<<20 {
		t.Errorf("it has %v and was allocated %v", s.Resources, s.AllocatedResources)
	}
	r.same(pod, was)
	c.sh(r.before, "main", "rm /dev/shm/fill")
	r.has(less)
}

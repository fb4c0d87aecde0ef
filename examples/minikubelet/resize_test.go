package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/testenv"
)

// sizedManifest is a pod with a UID of its own, so that an edited manifest is the same pod, with CPU in thousandths and memory in MiB: what one container requests, and
// half of what it may have. A change of memory restarts the second container.
func sizedManifest(uid string, cpu, memory int) string {
	resources := fmt.Sprintf("{requests: {cpu: %dm, memory: %dMi}, limits: {cpu: %dm, memory: %dMi}}", cpu, memory, 2*cpu, 2*memory)
	return `
apiVersion: v1
kind: Pod
metadata: {name: sized, uid: ` + uid + `}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - {name: stays, image: "podmill.test/busybox:1", command: [sleep, "100000"], resources: ` + resources + `}
  - name: restarts
    image: podmill.test/busybox:1
    command: [sleep, "100000"]
    resources: ` + resources + `
    resizePolicy: [{resourceName: memory, restartPolicy: RestartContainer}]
`
}

// kernel fails unless a cgroup has these limits of CPU and memory, and this share of CPU.
func (n *node) kernel(what, group string, shares, quota, memory int) {
	n.Helper()
	for file, want := range map[string]int{
		"cpu" + group + "/cpu.shares": shares, "cpu" + group + "/cpu.cfs_quota_us": quota, "memory" + group + "/memory.limit_in_bytes": memory << 20,
	} {
		data, err := os.ReadFile(filepath.Join("/sys/fs/cgroup", file))
		if got := strings.TrimSpace(string(data)); err != nil || got != fmt.Sprint(want) {
			n.Errorf("%s: %s is %s, want %d (%v)", what, file, got, want, err)
		}
	}
}

// A pod that is resized has the new limits in the kernel, seen from outside and from inside, as has its own cgroup, and is not restarted but where it asks for that; also
// where the agent was not there, or was killed.
func TestResizeOnContainerd(t *testing.T) {
	testenv.EachContainerd(t, func(t *testing.T, endpoint string) {
		n := newNode(t, endpoint)
		uid := n.name + "-sized"
		sized := func(cpu, memory int) { n.write("sized.yaml", sizedManifest(uid, cpu, memory)) }
		has := func(cpu, memory, restarts int) *corev1.Pod {
			t.Helper()
			pod := n.reaches("sized", fmt.Sprintf("has %dm and %dMi", cpu, memory), func(pod *corev1.Pod) bool {
				for _, c := range pod.Status.Conditions {
					if c.Type == corev1.PodResizeInProgress || c.Type == corev1.PodResizePending {
						return false
					}
				}
				for _, s := range pod.Status.ContainerStatuses {
					if s.Resources == nil || s.State.Running == nil || s.AllocatedResources.Cpu().MilliValue() != int64(cpu) ||
						s.Resources.Limits.Cpu().MilliValue() != int64(2*cpu) || s.Resources.Limits.Memory().Value() != int64(2*memory)<<20 {
						return false
					}
				}
				return ready(pod)
			})
			shares := cpu * 1024 / 1000
			for _, c := range []struct {
				name     string
				restarts int
			}{{"stays", 0}, {"restarts", restarts}} {
				seen := n.seen(pod.UID).Container(c.name)
				if seen.Attempt != uint32(c.restarts) || seen.State != podmill.StateRunning {
					t.Errorf("container %s has run %d times before, want %d: %v", c.name, seen.Attempt, c.restarts, seen.State)
				}
				n.kernel(c.name, n.podCgroup(pod)+"/"+seen.ID, shares, 200*cpu, 2*memory)
				inside := n.sh("sized", c.name, "cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/cpu/cpu.cfs_quota_us")
				if want := fmt.Sprintf("%d\n%d", 2*memory<<20, 200*cpu); inside != want {
					t.Errorf("from inside of %s: %q, want %q", c.name, inside, want)
				}
			}
			n.kernel("the pod", n.podCgroup(pod), 2*cpu*1024/1000, 400*cpu, 4*memory)
			return pod
		}
		sized(50, 16)
		n.start()
		before := n.seen(has(50, 16, 0).UID).Container("stays")
		sized(125, 16)
		has(125, 16, 0)
		sized(125, 32)
		has(125, 32, 1)
		sized(50, 12)
		has(50, 12, 2)
		n.wantEvents("ResizeStarted", "ResizeCompleted")
		n.stop()
		sized(75, 24)
		n.start()
		has(75, 24, 3)
		sized(125, 16)
		n.crash()
		n.start()
		pod := has(125, 16, 4)
		n.wantSame(&podmill.RuntimePod{Containers: []podmill.Container{*before}}, n.seen(pod.UID))
	})
}

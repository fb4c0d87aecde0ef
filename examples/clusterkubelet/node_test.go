package main

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/podmilltest"
)

// node returns the Node, nil if there is none.
func (c *cluster) node() *corev1.Node {
	c.t.Helper()
	found := &corev1.Node{}
	if !c.Get("nodes", c.Node, found) {
		return nil
	}
	return found
}

func (c *cluster) condition(kind corev1.NodeConditionType) corev1.NodeCondition {
	c.t.Helper()
	if found := c.node(); found != nil {
		for _, condition := range found.Status.Conditions {
			if condition.Type == kind {
				return condition
			}
		}
	}
	return corev1.NodeCondition{}
}

// The Node says what the machine has: images, what its runtime can do, and that it is under pressure where less is there than has to be.
func TestWhatTheNodeSays(t *testing.T) {
	c := newCluster(t)
	c.args = append(c.args, "--eviction-hard", "memory.available<1Ei,nodefs.available<1,pid.available<1")
	c.start()
	c.Eventually("the node is ready", c.nodeReady)
	c.Eventually("it says which images it has", func() bool {
		return slices.ContainsFunc(c.node().Status.Images, func(i corev1.ContainerImage) bool { return len(i.Names) > 0 && i.SizeBytes > 0 })
	})
	status := c.node().Status
	if len(status.RuntimeHandlers) == 0 || status.RuntimeHandlers[0].Features == nil || status.Features == nil {
		t.Errorf("runtime handlers %+v, features %+v", status.RuntimeHandlers, status.Features)
	}
	if memory := c.condition(corev1.NodeMemoryPressure); memory.Status != corev1.ConditionTrue || memory.Reason != "KubeletHasInsufficientMemory" {
		t.Errorf("MemoryPressure is %+v", memory)
	}
	for kind, reason := range map[corev1.NodeConditionType]string{corev1.NodeDiskPressure: "KubeletHasNoDiskPressure", corev1.NodePIDPressure: "KubeletHasSufficientPID"} {
		if got := c.condition(kind); got.Status != corev1.ConditionFalse || got.Reason != reason {
			t.Errorf("%s is %+v", kind, got)
		}
	}
}

// When the machine goes down, pods end by their priorities, and the API hears why; the node takes no others. (KEP-2000)
func TestTheMachineGoesDown(t *testing.T) {
	c := newCluster(t)
	c.args = append(c.args, "--shutdown-grace-period", "40s", "--shutdown-grace-period-critical-pods", "20s")
	c.start()
	c.Eventually("the node is ready", c.nodeReady)
	polite := podmilltest.Container("main", busybox, podmilltest.Runs("trap 'sleep 2; exit 0' TERM; sleep 100000 & wait"))
	c.CreatePod(podmilltest.Pod("x/web", polite))
	c.CreatePod(podmilltest.Pod("x/cni", polite, func(pod *corev1.Pod) { pod.Spec.PriorityClassName = "system-node-critical" }))
	c.reaches("web", "is ready", ready)
	c.reaches("cni", "is ready", ready)
	if err := c.process.Process.Signal(unix.SIGPWR); err != nil {
		t.Fatal(err)
	}
	over := func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed }
	web, cni := c.reaches("web", "is over", over), c.reaches("cni", "is over", over)
	for _, pod := range []*corev1.Pod{web, cni} {
		s := &pod.Status
		if s.Reason != "Terminated" || s.Message != "Pod was terminated in response to imminent node shutdown." {
			t.Errorf("%s: %s: %s", pod.Name, s.Reason, s.Message)
		}
		if !slices.ContainsFunc(s.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == corev1.PodReasonTerminationByKubelet
		}) {
			t.Errorf("%s has no condition DisruptionTarget: %+v", pod.Name, s.Conditions)
		}
	}
	first, last := web.Status.ContainerStatuses[0].State.Terminated, cni.Status.ContainerStatuses[0].State.Terminated
	if !first.FinishedAt.Before(&last.FinishedAt) {
		t.Errorf("web ended at %v, the critical pod at %v", first.FinishedAt, last.FinishedAt)
	}
	c.CreatePod(sleeper("late"))
	if late := c.reaches("late", "is rejected", over); late.Status.Reason != "NodeShutdown" {
		t.Errorf("a pod that comes now is %+v", late.Status)
	}
	c.Eventually("the node says that it goes down", func() bool {
		ready := c.condition(corev1.NodeReady)
		return ready.Status == corev1.ConditionFalse && strings.Contains(ready.Message, "node is shutting down")
	})
}

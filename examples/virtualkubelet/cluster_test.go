package main

import (
	"context"
	"io"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/internal/testenv"
	"github.com/podmill/podmill/internal/testenv/testapi"
	. "github.com/podmill/podmill/podmilltest"
)

// inCluster runs the program as a node of a real API server, with a node's rights.
func inCluster(t *testing.T, args ...string) *testapi.API {
	t.Helper()
	a := testapi.New(t)
	args = append([]string{"--kubeconfig", a.NodeKubeconfig, "--nodename", a.Node, "--root-dir", t.TempDir()}, args...)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- run(ctx, args, io.Discard) }()
	t.Cleanup(func() {
		pods := &corev1.PodList{}
		a.List("pods", pods)
		for i := range pods.Items {
			a.Delete("pods", pods.Items[i].Name, 1)
		}
		a.Eventually("the pods are gone", func() bool {
			a.List("pods", pods)
			return len(pods.Items) == 0
		})
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	a.Eventually("the node is ready", func() bool {
		node := &corev1.Node{}
		return a.Get("nodes", a.Node, node) && nodeReady(node)
	})
	return a
}

func nodeReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// aStory is a pod with an init container, a sidecar and a container that crashes, from its creation to its deletion with grace.
func aStory(t *testing.T, a *testapi.API) {
	t.Helper()
	const image = "podmill.test/busybox:1"
	sleep := Runs("trap 'exit 5' TERM; sleep 100000 & wait")
	pod := a.CreatePod(Pod("x/shop", Grace(time.Minute),
		InitContainer("migrate", image, Runs("sleep 1")),
		Sidecar("proxy", image, sleep, func(c *corev1.Container) {
			c.StartupProbe = &corev1.Probe{ProbeHandler: exec("true"), PeriodSeconds: 1}
		}),
		Container("web", image, sleep, func(c *corev1.Container) {
			c.ReadinessProbe = &corev1.Probe{ProbeHandler: exec("true"), PeriodSeconds: 1}
			c.Lifecycle = &corev1.Lifecycle{PostStart: hook("true"), PreStop: hook("true")}
		}),
		Container("flaky", image, Runs("sleep 1; exit 3"))))
	reaches := func(what string, is func(s *corev1.PodStatus) bool) *corev1.PodStatus {
		t.Helper()
		var status corev1.PodStatus
		a.Eventually("the pod "+what, func() bool {
			if now := a.Pod("shop"); now != nil {
				status = now.Status
			}
			return is(&status)
		})
		return &status
	}
	status := reaches("has everything started, and restarts flaky", func(s *corev1.PodStatus) bool {
		return len(s.ContainerStatuses) == 2 && s.ContainerStatuses[0].Ready && s.ContainerStatuses[1].RestartCount > 0
	})
	if end := status.InitContainerStatuses[0].State.Terminated; end == nil || end.ExitCode != 0 || end.Reason != "Completed" {
		t.Errorf("the init container is %+v", status.InitContainerStatuses[0])
	}
	if proxy := status.InitContainerStatuses[1]; proxy.State.Running == nil || !*proxy.Started || !proxy.Ready {
		t.Errorf("the sidecar is %+v", proxy)
	}
	if end := status.ContainerStatuses[1].LastTerminationState.Terminated; end == nil || end.ExitCode != 3 {
		t.Errorf("flaky is %+v", status.ContainerStatuses[1])
	}
	began := time.Now()
	a.Delete("pods", "shop", -1)
	a.Eventually("the pod is gone", func() bool { return a.Pod("shop") == nil })
	if took := time.Since(began); took > 45*time.Second {
		t.Errorf("it took %v until %s was gone, whose containers end when they are told", took, pod.Name)
	}
}

func TestInMemoryInACluster(t *testing.T) {
	testenv.Root(t) // tokens are on a tmpfs
	aStory(t, inCluster(t, "--provider", "memory"))
}

func TestContainerdInACluster(t *testing.T) {
	testenv.Root(t)
	endpoint := testenv.Containerd(t)
	aStory(t, inCluster(t, "--provider", "containerd", "--container-runtime-endpoint", endpoint))
}

func TestTasksInACluster(t *testing.T) {
	a := inCluster(t, "--provider", "tasks")
	a.CreatePod(Pod("x/good", Restart(corev1.RestartPolicyNever), Container("a", "sleep", Args("1s"))))
	a.CreatePod(Pod("x/bad", Restart(corev1.RestartPolicyNever), Container("a", "sleep", Args("soon"))))
	a.CreatePod(Pod("x/long", Restart(corev1.RestartPolicyNever), Container("a", "sleep", Args("10h"))))
	for name, phase := range map[string]corev1.PodPhase{"good": corev1.PodSucceeded, "bad": corev1.PodFailed, "long": corev1.PodRunning} {
		a.Eventually(name+" is "+string(phase), func() bool { return a.Pod(name).Status.Phase == phase })
	}
	if end := a.Pod("bad").Status.ContainerStatuses[0].State.Terminated; end == nil || end.ExitCode != 2 {
		t.Errorf("bad is %+v", a.Pod("bad").Status)
	}
	a.Delete("pods", "long", 30)
	a.Eventually("long is gone", func() bool { return a.Pod("long") == nil })
}

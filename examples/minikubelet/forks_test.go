package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/internal/testenv"
)

// What a hook or probe runs that never comes back: one hangs beside its child, one ends and leaves its output open to the child, for which a runtime waits.
const (
	hangs = `{exec: {command: [sh, -c, "sleep 0.5; echo hook >> /diary/all; sleep 1000 & sleep 1000"]}}`
	holds = `{exec: {command: [sh, -c, "sleep 0.5; echo hook >> /diary/all; sleep 1000 &"]}}`
)

// A preStop hook that forks has the pod's grace, and no more.
func TestAPreStopHookThatForks(t *testing.T) {
	for name, hook := range map[string]string{"hangs": hangs, "holds its output": holds} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, dir := newNode(t, testenv.Containerd(t)), t.TempDir()
			n.write("pod.yaml", hooked(dir, "8", `{preStop: `+hook+`}`))
			n.start()
			pod := n.reaches("hooked", "is ready", ready)
			removed := time.Now()
			n.remove("pod.yaml")
			n.gone(pod)
			if took := time.Since(removed); took < 8*time.Second || took > 45*time.Second {
				t.Errorf("the end took %v", took)
			}
			n.wantDiary(dir, "started", "hook", "stopped")
			n.wantEvents("FailedPreStopHook")
		})
	}
}

// A postStart hook that forks keeps its container from starting, for as long as that lives, and holds up neither its end nor that of the pod.
func TestAPostStartHookThatForks(t *testing.T) {
	for name, hook := range map[string]string{"hangs": hangs, "holds its output": holds} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, dir := newNode(t, testenv.Containerd(t)), t.TempDir()
			n.write("pod.yaml", hooked(dir, "60", `{postStart: `+hook+`}`))
			n.start()
			n.wantDiary(dir, "started", "hook")
			pod := n.reaches("hooked", "is told of", func(*corev1.Pod) bool { return true })
			n.kill(pod, "main")
			n.wantDiary(dir, "started", "hook", "started", "hook")
			pod = n.reaches("hooked", "has been restarted", func(pod *corev1.Pod) bool { return pod.Status.ContainerStatuses[0].RestartCount == 1 })
			if ready(pod) || pod.Status.ContainerStatuses[0].State.Running != nil {
				t.Errorf("during the hook: %+v", pod.Status.ContainerStatuses)
			}
			removed := time.Now()
			n.remove("pod.yaml")
			n.gone(pod)
			if took := time.Since(removed); took > 45*time.Second {
				t.Errorf("the end took %v", took)
			}
			n.wantDiary(dir, "started", "hook", "started", "hook", "stopped")
		})
	}
}

// A probe that forks has its timeout, and has failed then.
func TestAProbeThatForks(t *testing.T) {
	t.Parallel()
	n := newNode(t, testenv.Containerd(t))
	var containers strings.Builder
	for name, script := range map[string]string{"hangs": "sleep 1000 & sleep 1000", "holds": "sleep 1000 &"} {
		fmt.Fprintf(&containers, `
  - name: %s
    image: podmill.test/busybox:1
    command: [sh, -c, 'trap exit TERM; while :; do sleep 0.1 & wait $!; done']
    livenessProbe: {timeoutSeconds: 1, periodSeconds: 1, failureThreshold: 2, exec: {command: [sh, -c, %q]}}
`, name, script)
	}
	n.write("pod.yaml", `
apiVersion: v1
kind: Pod
metadata: {name: forks}
spec:
  terminationGracePeriodSeconds: 1
  containers:`+containers.String())
	n.start()
	pod := n.reaches("forks", "has restarted both", func(pod *corev1.Pod) bool {
		for _, c := range pod.Status.ContainerStatuses {
			if c.LastTerminationState.Terminated == nil {
				return false
			}
		}
		return len(pod.Status.ContainerStatuses) == 2
	})
	for _, c := range pod.Status.ContainerStatuses {
		end := c.LastTerminationState.Terminated
		if ran := end.FinishedAt.Sub(end.StartedAt.Time); ran < time.Second || ran > time.Minute {
			t.Errorf("%s ran for %v, want two probes of a second and a bit", c.Name, ran)
		}
	}
	timedOut := map[string]bool{}
	for _, e := range n.events() {
		timedOut[e.InvolvedObject.FieldPath] = timedOut[e.InvolvedObject.FieldPath] || strings.Contains(e.Message, "timed out after 1s")
	}
	for _, name := range []string{"hangs", "holds"} {
		if !timedOut["spec.containers{"+name+"}"] {
			t.Errorf("nobody was told that the probe of %s took too long", name)
		}
	}
}

package agent_test

import (
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/agent"
	. "github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/probe"
	"github.com/podmill/podmill/syncpod"
)

// From the result that decides to the call that kills no time passes: nothing polls, and nothing waits for a tick. The new instance is not ready
// before its own probe has said so (B039), and counts as a restart.
func TestALivenessFailureKillsAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		var mu sync.Mutex
		var decided, killed time.Time
		w.opts = []agent.Option{agent.WithObservers(agent.Observers{
			Probe: probe.Observer{Probed: func(r probe.Run) {
				mu.Lock()
				defer mu.Unlock()
				if r.Type == podmill.ProbeLiveness && killed.IsZero() {
					decided = time.Now()
				}
			}},
			SyncPod: syncpod.Observer{Planned: func(_ podmill.PodRef, a *syncpod.Actions) {
				mu.Lock()
				defer mu.Unlock()
				if len(a.Kill) > 0 && killed.IsZero() {
					killed = time.Now()
				}
			}},
		})}
		exec := func(script string) corev1.ProbeHandler {
			return corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: Script(script)}}
		}
		pod := Pod("web", static, Container("server", "busybox:1", func(c *corev1.Container) {
			c.LivenessProbe = &corev1.Probe{ProbeHandler: exec("exit 1"), PeriodSeconds: 10, TimeoutSeconds: 1, FailureThreshold: 3, SuccessThreshold: 1}
		}))
		w.start()
		w.file.Replace(pod)
		w.pass(35 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if killed.IsZero() || killed.Sub(decided) != 0 {
			t.Errorf("decided at %v, killed at %v\n%s", decided, killed, w.rt.Log())
		}
		status := w.wantPhase(pod, corev1.PodRunning).Status.ContainerStatuses[0]
		if end := status.LastTerminationState.Terminated; status.RestartCount != 1 || end == nil {
			t.Errorf("status %+v", status)
		}
	})
}

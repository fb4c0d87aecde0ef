package agent_test

import (
	"context"
	"fmt"
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

// B042: a container whose startup probe has never succeeded has not started, nor is it ready, before and after a restart of the agent, and then it goes on as any other.
func TestAStartupProbeThatNeverSucceededOverARestart(t *testing.T) {
	inWorld(t, func(w *world) {
		pod := Pod("web", static, Container("server", "busybox:1", func(c *corev1.Container) {
			c.StartupProbe = &corev1.Probe{
				ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: Script("cat /tmp/started")}},
				PeriodSeconds: 2, TimeoutSeconds: 1, FailureThreshold: 100, SuccessThreshold: 1,
			}
		}))
		started := func(want bool) {
			t.Helper()
			p := w.wantPhase(pod, corev1.PodRunning)
			if s := p.Status.ContainerStatuses[0]; s.State.Running == nil || *s.Started != want || s.Ready != want || s.RestartCount != 0 {
				t.Errorf("started is not %v: %+v", want, s)
			}
		}
		w.start()
		w.file.Replace(pod)
		w.pass(5 * time.Second)
		started(false)
		w.start()
		for range 10 {
			w.pass(time.Second / 2)
			started(false)
		}
		seen, err := w.rt.InspectPod(t.Context(), pod.UID)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.rt.Exec(t.Context(), seen.Container("server").ID, Script("echo yes > /tmp/started")); err != nil {
			t.Fatal(err)
		}
		w.pass(3 * time.Second)
		started(true)
	})
}

// killWatch tells of the calls that stop a container.
type killWatch struct {
	podmill.Runtime
	killed chan time.Time
}

func (k *killWatch) Unwrap() podmill.Runtime { return k.Runtime }

func (k *killWatch) StopContainer(ctx context.Context, id string, grace time.Duration) error {
	select {
	case k.killed <- time.Now():
	default:
	}
	return k.Runtime.StopContainer(ctx, id, grace)
}

// BenchmarkLivenessToKill is the real time from a deciding liveness result to the call that stops the container, over the in-memory
// runtime, beside the bare hand-over to a goroutine that makes the call.
func BenchmarkLivenessToKill(b *testing.B) {
	b.Run("baseline=goroutine", func(b *testing.B) {
		results, killed := make(chan time.Time), make(chan time.Duration)
		defer close(results)
		go func() {
			for decided := range results {
				killed <- time.Since(decided)
			}
		}()
		var total time.Duration
		for b.Loop() {
			results <- time.Now()
			total += <-killed
		}
		b.ReportMetric(float64(total.Microseconds())/float64(b.N), "us/kill")
	})
	b.Run("agent", func(b *testing.B) {
		rt := NewRuntime(WithImages(ScriptImage("busybox:1", "sleep 1000000")))
		defer rt.Close()
		watch := &killWatch{Runtime: rt, killed: make(chan time.Time, 1)}
		decided := make(chan time.Time, 1)
		source := NewPodSource("file")
		a, err := agent.New(watch, b.TempDir(), []podmill.PodSource{source}, agent.WithObservers(agent.Observers{
			Probe: probe.Observer{Probed: func(probe.Run) {
				select {
				case decided <- time.Now():
				default:
				}
			}},
		}))
		if err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithCancel(b.Context())
		ended := make(chan error, 1)
		go func() { ended <- a.Run(ctx) }()
		source.Replace()
		var total time.Duration
		for i := 0; b.Loop(); i++ {
			pod := Pod(fmt.Sprint("pod-", b.N, "-", i), static, Grace(0), Container("server", "busybox:1", func(c *corev1.Container) {
				c.LivenessProbe = &corev1.Probe{
					ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: Script("exit 1")}}, PeriodSeconds: 1, TimeoutSeconds: 1, FailureThreshold: 1, SuccessThreshold: 1,
				}
			}))
			source.Upsert(pod)
			at := <-decided
			total += (<-watch.killed).Sub(at)
			source.Delete(pod)
			for running := true; running; { // its end stops nothing that the next one measures
				select {
				case <-watch.killed:
				case <-decided:
				case <-time.After(50 * time.Millisecond):
					running = false
				}
			}
		}
		b.ReportMetric(float64(total.Microseconds())/float64(b.N), "us/kill")
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
}

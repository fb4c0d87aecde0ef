package probe

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// quick is a container with one probe each second.
func quick() *corev1.Container {
	return with(map[kind]*corev1.Probe{liveness: execProbe("x", func(p *corev1.Probe) { p.PeriodSeconds = 1 })})
}

// 1,000 probes that take 5 ms each and are all due at once begin within 5 % of their period, and cost one goroutine while they wait.
func TestManyProbes(t *testing.T) {
	virtually(t, func(r *rig) {
		r.answer = func(context.Context, string, string) (*podmill.ExecResult, error) {
			time.Sleep(5 * time.Millisecond)
			return &podmill.ExecResult{}, nil
		}
		synctest.Wait()
		before := runtime.NumGoroutine()
		for i := range 1000 {
			pod := podOf(types.UID(fmt.Sprint(i)), quick())
			r.Probe(pod, running(pod, fmt.Sprint("c", i), r.t0), false)
		}
		r.pass(3500 * time.Millisecond)
		if idle := runtime.NumGoroutine() - before; idle > 1 { // beside Run's; Go may have begun one of its own
			t.Errorf("%d goroutines more for idle probes", idle)
		}
		runs := r.results()
		if len(runs) != 4000 {
			t.Errorf("%d runs", len(runs))
		}
		var worst time.Duration
		for _, run := range runs {
			worst = max(worst, run.Late)
		}
		if worst > 50*time.Millisecond {
			t.Errorf("%v late", worst)
		}
		t.Logf("at most %v late", worst)
	})
}

// The pool is as wide as it was asked to be, and a failure is known at once.
func TestParallel(t *testing.T) {
	virtually(t, func(r *rig) {
		under, most := 0, 0
		r.answer = func(context.Context, string, string) (*podmill.ExecResult, error) {
			r.with(func() { under++; most = max(most, under) })
			time.Sleep(10 * time.Millisecond)
			r.with(func() { under-- })
			return &podmill.ExecResult{ExitCode: 1}, nil
		}
		for i := range 20 {
			c := quick()
			c.LivenessProbe.FailureThreshold = 1
			pod := podOf(types.UID(fmt.Sprint(i)), c)
			r.Probe(pod, running(pod, "c", r.t0), false)
		}
		r.pass(70 * time.Millisecond)
		r.with(func() {
			if most != 3 || r.notified != 20 {
				t.Errorf("%d at once, %d notices", most, r.notified)
			}
		})
	}, WithParallel(3))
}

// Run ends although a probe does not, and runs once.
func TestRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		m := New(func(context.Context, string, []string) (*podmill.ExecResult, error) {
			<-release
			return &podmill.ExecResult{ExitCode: 1}, nil
		}, func(types.UID) { t.Error("a notice for what was cut off") })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- m.Run(ctx) }()
		c := quick()
		c.LivenessProbe.FailureThreshold = 1
		pod := podOf("a", c)
		m.Probe(pod, running(pod, "c", time.Now()), false)
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if m.Run(t.Context()) == nil {
			t.Error("it ran twice")
		}
		close(release)
		synctest.Wait()
	})
}

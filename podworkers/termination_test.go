package podworkers_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/podworkers"
)

// B058: the second delete with a shorter grace period is heeded, a longer one is not.
func TestAGracePeriodShrinksWhileAStopIsInFlight(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		s.StopFunc = func(ctx context.Context, pod *corev1.Pod, term podmill.Termination) error {
			err := untilDeadline(ctx, pod, term)
			if err != nil {
				s.note("stop ends: %v", context.Cause(ctx))
			}
			return err
		}
		deadline := func() time.Duration { synctest.Wait(); return w.Pods()[0].Deadline.Sub(s.began) }
		w.Update(pod("a"))
		synctest.Wait()
		w.Update(pod("a", podmilltest.Deleted(120*time.Second)))
		pass(5 * time.Second)
		w.Update(pod("a", podmilltest.Deleted(10*time.Second)))
		if got := deadline(); got != 15*time.Second {
			t.Errorf("the deadline is at %v", got)
		}
		w.Update(pod("a", podmilltest.Deleted(300*time.Second)))
		w.Kill("a", podmill.Kill{})
		w.Remove("a")
		if got := deadline(); got != 15*time.Second {
			t.Errorf("the deadline has gone to %v", got)
		}
		pass(time.Minute)
		s.expect(t, `
			0s sync a
			0s stop a* by 2m0s
			5s stop ends: the termination has changed
			5s stop a* by 15s
			15s clean a*`)
	})
}

// B058: zero is at once.
func TestAGracePeriodOfZeroIsAtOnce(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		s.StopFunc = untilDeadline
		w.Update(pod("a"))
		w.Kill("a", after(20))
		pass(5 * time.Second)
		done := w.Kill("a", after(0))
		if !closed(done) {
			t.Error("it takes time")
		}
		s.expect(t, `
			0s sync a
			0s stop a by 20s
			5s stop a by 5s
			5s clean a`)
	})
}

// B100: a kill such as an eviction's may shorten what the pod has, and no more.
func TestTheGraceOfAPod(t *testing.T) {
	none := func(pod *corev1.Pod) { pod.Spec.TerminationGracePeriodSeconds = nil }
	own := func(seconds int64) podmilltest.PodOption {
		return func(pod *corev1.Pod) { pod.Spec.TerminationGracePeriodSeconds = &seconds }
	}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		kill podmill.Kill
		want time.Duration
	}{
		"its own":                      {pod("a"), podmill.Kill{}, 30 * time.Second},
		"its own is zero":              {pod("a", own(0)), podmill.Kill{}, 0},
		"the API's default":            {pod("a", none, func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = nil }), podmill.Kill{}, 30 * time.Second},
		"a kill's, shorter":            {pod("a"), after(3), 3 * time.Second},
		"a kill's, longer":             {pod("a"), after(300), 30 * time.Second},
		"less than nothing":            {pod("a"), after(-1), 30 * time.Second},
		"a deletion's, with less":      {pod("a", podmilltest.Deleted(-time.Second)), podmill.Kill{}, time.Second},
		"more than a duration holds":   {pod("a", own(1<<62)), podmill.Kill{}, (1<<31 - 1) * time.Second},
		"a deletion's":                 {pod("a", podmilltest.Deleted(7*time.Second)), podmill.Kill{}, 7 * time.Second},
		"at once":                      {pod("a"), after(0), 0},
		"a deletion's, kill is longer": {pod("a", podmilltest.Deleted(7*time.Second)), after(60), 7 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got podmill.Termination
				s := &story{began: time.Now(), StopFunc: func(_ context.Context, _ *corev1.Pod, t podmill.Termination) error { got = t; return nil }}
				w := podworkers.New(s)
				w.Update(tc.pod)
				w.Kill("a", tc.kill)
				start(t, w)()
				if d := got.Deadline.Sub(s.began); d != tc.want || got.GracePeriodSeconds != int64(tc.want/time.Second) {
					t.Errorf("the deadline is in %v and the grace %d s", d, got.GracePeriodSeconds)
				}
			})
		})
	}
}

func TestANearerDeadlineDoesNotWaitForABackoff(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		s.StopFunc = func(_ context.Context, _ *corev1.Pod, term podmill.Termination) error {
			if term.GracePeriodSeconds > 0 {
				return errSync
			}
			return nil
		}
		w.Update(pod("a"))
		w.Remove("a")
		pass(time.Second)
		w.Kill("a", after(0))
		s.expect(t, `
			0s sync a
			0s stop a by 30s
			1s stop a by 1s
			1s clean a`)
	}, podworkers.WithBackoff(time.Minute, time.Minute))
}

func TestTheGraceStartsToRunWhenTheStopBegins(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		s.SyncPodFunc = func(context.Context, *corev1.Pod) (*podmill.Kill, error) { time.Sleep(time.Minute); return nil, nil }
		w.Update(pod("a"))
		pass(time.Second)
		w.Kill("a", after(10))
		pass(time.Minute)
		s.expect(t, `
			0s sync a
			1m0s stop a by 1m10s
			1m0s clean a`)
	})
}

func TestTheFirstReasonIsTheReason(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		s.StopFunc = untilDeadline
		w.Update(pod("a"))
		w.Remove("a")
		pass(time.Second)
		w.Kill("a", podmill.Kill{Reason: "Evicted"})
		pass(time.Second)
		w.Kill("a", podmill.Kill{Reason: "DeadlineExceeded"})
		pass(time.Minute)
		s.expect(t, `
			0s sync a
			0s stop a by 30s
			1s stop a by 30s Evicted
			30s clean a`)
	})
}

// B049: a pod whose time is up ends by itself, and yet for a reason.
func TestAPodMayEndByItselfForAReason(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		s.SyncPodFunc = func(context.Context, *corev1.Pod) (*podmill.Kill, error) {
			return &podmill.Kill{Reason: "DeadlineExceeded"}, nil
		}
		s.StopFunc = untilDeadline
		w.Update(pod("a"))
		pass(time.Minute)
		s.expect(t, `
			0s sync a
			0s stop a by 30s DeadlineExceeded
			30s clean a`)
	})
}

func TestAPodThatEndedByItselfEndedForNoOtherReason(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		s.SyncPodFunc = func(context.Context, *corev1.Pod) (*podmill.Kill, error) { return &podmill.Kill{}, nil }
		s.StopFunc = untilDeadline
		w.Update(pod("a"))
		pass(time.Second)
		w.Update(pod("b", phase(corev1.PodFailed)))
		w.Kill("a", podmill.Kill{Reason: "Evicted"})
		w.Kill("b", podmill.Kill{Reason: "Evicted"})
		pass(time.Minute)
		s.expect(t, `
			0s sync a
			0s stop a by 30s
			1s stop b by 31s
			30s clean a
			31s clean b`)
	})
}

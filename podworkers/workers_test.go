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

func TestAPodIsSyncedWhenItComesChangesOrSomethingHappens(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		w.Update(pod("a", v("1")))
		s.expect(t, `0s sync a/1`)
		pass(time.Second)
		w.Update(pod("a", v("2")))
		s.expect(t, `1s sync a/2`)
		pass(time.Second)
		w.Sync("a")
		s.expect(t, `2s sync a/2`)
		pass(time.Hour)
		s.expect(t, ``)
		expectStates(t, w, "a syncing")
	})
}

func TestWhatIsSaidDuringASyncLeadsToOneMore(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		s.SyncPodFunc = func(ctx context.Context, _ *corev1.Pod) (bool, error) { return false, sleep(ctx, 10*time.Second) }
		w.Update(pod("a", v("1")))
		pass(time.Second)
		for range 1000 {
			w.Sync("a")
		}
		w.Update(pod("a", v("2")))
		w.Update(pod("a", v("3")))
		pass(time.Hour)
		s.expect(t, `
			0s sync a/1
			10s sync a/3`)
	})
}

func TestARemovedPodIsStoppedCleanedUpAndForgotten(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		s.StopFunc = func(ctx context.Context, _ *corev1.Pod, _ podmill.Termination) error {
			return sleep(ctx, 3*time.Second)
		}
		s.CleanFunc = func(ctx context.Context, _ *corev1.Pod) error { return sleep(ctx, 2*time.Second) }
		w.Update(pod("a"))
		pass(time.Second)
		w.Remove("a")
		expectStates(t, w, "a terminating")
		pass(3 * time.Second)
		expectStates(t, w, "a terminated")
		if !w.Known("a") {
			t.Error("a pod that is being cleaned up is not known")
		}
		pass(2 * time.Second)
		expectStates(t, w)
		if w.Known("a") {
			t.Error("a pod that is gone is known")
		}
		s.expect(t, `
			0s sync a
			1s stop a by 31s
			4s clean a`)
	})
}

// B021: updates that arrive while the worker is busy do not overwrite each other.
func TestAKillOutlivesLaterUpdates(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		unblock := make(chan struct{})
		s.SyncPodFunc = func(context.Context, *corev1.Pod) (bool, error) { <-unblock; return false, nil }
		w.Update(pod("a", v("1")))
		synctest.Wait()
		w.Update(pod("a", v("2")))
		w.Sync("a")
		w.Kill("a", after(20))
		w.Kill("a", after(5))
		w.Kill("a", after(10))
		w.Update(pod("a", v("3")))
		pass(time.Second)
		close(unblock)
		s.expect(t, `
			0s sync a/1
			1s stop a/3 by 6s
			1s clean a/3`)
		w.Update(pod("a", v("4")))
		w.Sync("a")
		s.expect(t, ``)
		expectStates(t, w, "a finished")
	})
}

// B017: a pod that is deleted during a long image pull does not wait for the pull.
func TestTerminationCancelsTheSyncInFlight(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		s.SyncPodFunc = func(ctx context.Context, _ *corev1.Pod) (bool, error) {
			err := sleep(ctx, 1700*time.Second)
			s.note("pull ends: %v", context.Cause(ctx))
			return true, err
		}
		w.Update(pod("a"))
		pass(5 * time.Second)
		w.Update(pod("a", podmilltest.Deleted(30*time.Second)))
		s.expect(t, `
			0s sync a
			5s pull ends: the pod has to end
			5s stop a* by 35s
			5s clean a*`)
		pass(time.Hour)
		s.expect(t, ``)
	})
}

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
		"a kill's, longer":             {pod("a"), after(300), 300 * time.Second},
		"less than nothing":            {pod("a"), after(-5), time.Second},
		"more than a duration holds":   {pod("a"), after(1 << 62), (1<<31 - 1) * time.Second},
		"a deletion's":                 {pod("a", podmilltest.Deleted(7*time.Second)), podmill.Kill{}, 7 * time.Second},
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
		s.SyncPodFunc = func(context.Context, *corev1.Pod) (bool, error) { time.Sleep(time.Minute); return false, nil }
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

// B015: a pod that has to end before it was started is not taken for one that has finished, and not started either.
func TestAPodThatIsRemovedBeforeItStartsIsTornDownOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &story{began: time.Now()}
		w := podworkers.New(s)
		w.Update(pod("a"))
		w.Remove("a")
		if !w.Known("a") {
			t.Error("it is forgotten before anybody looked what runs of it")
		}
		defer start(t, w)()
		s.expect(t, `
			0s stop a by 30s
			0s clean a`)
		expectStates(t, w)
	})
}

// B016: a pod that is Succeeded or Failed when the agent starts is not started again, but looked after.
func TestAPodThatHadEndedIsOnlyTornDown(t *testing.T) {
	for _, p := range []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed} {
		withWorkers(t, func(t *testing.T, w calm, s *story) {
			w.Update(pod("a", phase(p)))
			s.expect(t, `
				0s stop a by 30s
				0s clean a`)
			w.Update(pod("a", v("2"), phase(p)))
			s.expect(t, ``)
			expectStates(t, w, "a finished")
		})
	}
}

func TestAPodWhoseWorkIsDoneTerminates(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		s.SyncPodFunc = func(context.Context, *corev1.Pod) (bool, error) { return true, nil }
		w.Update(pod("a"))
		s.expect(t, `
			0s sync a
			0s stop a by 30s
			0s clean a`)
		expectStates(t, w, "a finished")
	})
}

func TestADeletionAfterTheEndIsPassedOnOnce(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		s.SyncPodFunc = func(context.Context, *corev1.Pod) (bool, error) { return true, nil }
		w.Update(pod("a", v("1")))
		pass(time.Hour)
		s.told()
		w.Update(pod("a", v("2")))
		w.Update(pod("a", v("3"), podmilltest.Deleted(30*time.Second)))
		w.Update(pod("a", v("4"), podmilltest.Deleted(0)))
		s.expect(t, `1h0m0s clean a/3*`)
		expectStates(t, w, "a finished")
		w.Remove("a")
		expectStates(t, w)
		s.expect(t, ``)
	})
}

func TestAPodIsForgottenOnlyBetweenSyncs(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		w.Update(pod("a", phase(corev1.PodFailed)))
		s.CleanFunc = func(ctx context.Context, _ *corev1.Pod) error { return sleep(ctx, 5*time.Second) }
		w.Update(pod("a", podmilltest.Deleted(0)))
		w.Remove("a")
		w.Update(pod("a", v("again")))
		pass(time.Minute)
		s.expect(t, `
			0s stop a by 30s
			0s clean a
			0s clean a*
			5s sync a/again`)
	})
}

func TestNothingIsDoneForAPodThatIsForgotten(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		w.Update(pod("failing", phase(corev1.PodFailed)))
		w.Update(pod("waiting", phase(corev1.PodFailed)))
		s.CleanFunc = func(context.Context, *corev1.Pod) error { return errSync }
		w.Update(pod("failing", podmilltest.Deleted(0)))
		s.SyncPodFunc = func(ctx context.Context, _ *corev1.Pod) (bool, error) { return false, sleep(ctx, time.Minute) }
		w.Update(pod("busy"))
		w.Update(pod("waiting", podmilltest.Deleted(0)))
		s.told()
		w.Remove("failing")
		w.Remove("waiting")
		expectStates(t, w, "busy syncing")
		pass(time.Hour)
		s.expect(t, ``)
	}, podworkers.WithParallel(1))
}

func TestADeletionDuringCleanUpIsPassedOn(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		s.CleanFunc = func(ctx context.Context, _ *corev1.Pod) error { return sleep(ctx, 5*time.Second) }
		w.Update(pod("a"))
		w.Kill("a", podmill.Kill{Reason: "Evicted"})
		pass(time.Second)
		w.Update(pod("a", podmilltest.Deleted(30*time.Second)))
		pass(time.Minute)
		s.expect(t, `
			0s sync a
			0s stop a by 30s Evicted
			0s clean a
			5s clean a*`)
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

func TestAPodThatEndedByItselfEndedForNoOtherReason(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		s.SyncPodFunc = func(context.Context, *corev1.Pod) (bool, error) { return true, nil }
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

func TestAKillSaysWhenNoContainerRuns(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		s.StopFunc = func(ctx context.Context, _ *corev1.Pod, _ podmill.Termination) error {
			return sleep(ctx, 5*time.Second)
		}
		s.CleanFunc = func(ctx context.Context, _ *corev1.Pod) error { return sleep(ctx, 5*time.Second) }
		if !closed(w.Kill("nobody", podmill.Kill{})) {
			t.Error("a pod that is not known runs")
		}
		w.Update(pod("a"))
		first, second := w.Kill("a", podmill.Kill{}), w.Kill("a", podmill.Kill{})
		pass(4 * time.Second)
		if closed(first) || closed(second) {
			t.Error("it is said to have stopped before it has")
		}
		pass(time.Second)
		if !closed(first) || !closed(second) {
			t.Error("nobody is told that it has stopped")
		}
		expectStates(t, w, "a terminated")
		if !closed(w.Kill("a", after(0))) {
			t.Error("a pod that has stopped runs")
		}
		pass(time.Minute)
		w.Kill("a", after(0))
		s.expect(t, `
			0s sync a
			0s stop a by 30s
			5s clean a`)
	})
}

func TestNonsenseIsIgnored(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		w.Update(nil)
		w.Update(&corev1.Pod{})
		w.Orphan(nil)
		w.Orphan(&podmill.RuntimePod{})
		w.Sync("")
		w.Remove("nobody")
		s.expect(t, ``)
		expectStates(t, w)
	})
}

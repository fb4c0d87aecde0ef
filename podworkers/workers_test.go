package podworkers_test

import (
	"context"
	"errors"
	"strings"
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
		s.SyncPodFunc = func(ctx context.Context, _ *corev1.Pod) (*podmill.Kill, error) {
			return nil, sleep(ctx, 10*time.Second)
		}
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
		s.SyncPodFunc = func(context.Context, *corev1.Pod) (*podmill.Kill, error) { <-unblock; return nil, nil }
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
		s.SyncPodFunc = func(ctx context.Context, _ *corev1.Pod) (*podmill.Kill, error) {
			err := sleep(ctx, 1700*time.Second)
			s.note("pull ends: %v", context.Cause(ctx))
			return &podmill.Kill{}, err
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
		s.SyncPodFunc = func(context.Context, *corev1.Pod) (*podmill.Kill, error) { return &podmill.Kill{}, nil }
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
		s.SyncPodFunc = func(context.Context, *corev1.Pod) (*podmill.Kill, error) { return &podmill.Kill{}, nil }
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
		s.SyncPodFunc = func(ctx context.Context, _ *corev1.Pod) (*podmill.Kill, error) { return nil, sleep(ctx, time.Minute) }
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

// A call that was given up has taken effect late: the runtime holds something of a job that is over.
func TestWhatComesUpOfAFinishedPodIsCleanedUp(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		cleans := 0
		s.SyncPodFunc = func(context.Context, *corev1.Pod) (*podmill.Kill, error) {
			if cleans > 0 {
				return nil, nil
			}
			return &podmill.Kill{}, nil
		}
		s.CleanFunc = func(context.Context, *corev1.Pod) error {
			if cleans++; cleans == 2 {
				return errors.New("not now")
			}
			return nil
		}
		w.Leftover("a") // nobody knows it
		w.Update(pod("a"))
		w.Sync("a") // something happened, which is not that
		pass(time.Second)
		w.Leftover("a")
		pass(time.Minute)
		w.Update(pod("runs"))
		w.Leftover("runs")
		told := s.told()
		if !strings.HasPrefix(told, "0s sync a\n0s stop a by 30s\n0s clean a\n1s clean a\n") || !strings.HasSuffix(told, " clean a\n1m1s sync runs") ||
			strings.Count(told, "clean a") != 3 {
			t.Error(told)
		}
		expectStates(t, w, "a finished", "runs syncing")
	}, podworkers.WithBackoff(time.Second, time.Second))
}

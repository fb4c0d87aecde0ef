package podworkers_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podworkers"
)

func TestSyncsRunOnlyWithinRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &story{began: time.Now()}
		w := podworkers.New(s)
		w.Update(pod("a", v("1")))
		w.Sync("a")
		pass(time.Hour)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := w.Run(ended); err != nil {
			t.Error(err)
		}
		s.expect(t, ``)
		stop := start(t, w)
		s.expect(t, `1h0m0s sync a/1`)
		stop()
		w.Update(pod("a", v("2")))
		w.Remove("a")
		w.Update(pod("b"))
		pass(time.Hour)
		s.expect(t, ``)
		expectStates(t, w, "a terminating", "b syncing")
	})
}

// The end of an agent touches no container: no sync is begun for it.
func TestTheEndOfRunCancelsAndAwaitsTheSyncsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &story{began: time.Now()}
		s.SyncPodFunc = func(ctx context.Context, pod *corev1.Pod) (*podmill.Kill, error) {
			err := sleep(ctx, time.Hour)
			s.note("cancelled: %v", context.Cause(ctx))
			time.Sleep(3 * time.Second)
			s.note("ends")
			return nil, err
		}
		w := podworkers.New(s, podworkers.WithParallel(1))
		w.Update(pod("a"))
		w.Update(pod("b"))
		w.Remove("b")
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		pass(time.Second)
		cancel(errors.New("good night"))
		synctest.Wait()
		if err := w.Run(t.Context()); err == nil {
			t.Error("they run a second time before the first has ended")
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		s.expect(t, `
			0s sync a
			1s cancelled: good night
			4s ends`)
		if p := w.Pods()[0]; p.Running || p.Failures > 0 {
			t.Errorf("%+v", p)
		}
		s.SyncPodFunc = nil
		stop := start(t, w)
		s.expect(t, `
			4s sync a
			4s stop b by 34s
			4s clean b`)
		stop()
	})
}

func TestADeadlineSurvivesTheEndOfRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &story{began: time.Now(), StopFunc: untilDeadline}
		w := podworkers.New(s)
		w.Update(pod("a"))
		w.Remove("a")
		stop := start(t, w)
		pass(10 * time.Second)
		stop()
		pass(5 * time.Second)
		stop = start(t, w)
		pass(time.Minute)
		stop()
		s.expect(t, `
			0s stop a by 30s
			15s stop a by 30s
			30s clean a`)
	})
}

func TestASecondRunIsRefused(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, _ *story) {
		if err := w.Run(t.Context()); err == nil {
			t.Error("they run twice")
		}
	})
}

func TestASyncerMayCallTheWorkers(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		s.SyncPodFunc = func(ctx context.Context, p *corev1.Pod) (*podmill.Kill, error) {
			w.Sync(p.UID)
			w.Workers.Update(pod("a", v("2")))
			done := w.Workers.Kill(p.UID, after(1))
			w.Pods()
			<-ctx.Done()
			if isClosed(done) {
				return &podmill.Kill{}, ctx.Err()
			}
			return nil, ctx.Err()
		}
		w.Update(pod("a"))
		s.expect(t, `
			0s sync a
			0s stop a/2 by 1s
			0s clean a/2`)
	})
}

func TestTheObserverSeesEveryStepInOrder(t *testing.T) {
	var mu sync.Mutex
	var got []string
	note := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, fmt.Sprintf(format, args...))
	}
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		s.SyncPodFunc = func(ctx context.Context, _ *corev1.Pod) (*podmill.Kill, error) { return nil, sleep(ctx, time.Hour) }
		s.StopFunc = stopsIn(2 * time.Second)
		failures := []error{errSync, nil}
		s.CleanFunc = func(context.Context, *corev1.Pod) error {
			err := failures[0]
			failures = failures[1:]
			return err
		}
		w.Update(pod("a"))
		pass(time.Second)
		w.Remove("a")
		pass(time.Minute)
		expectStates(t, w)
	}, podworkers.WithObserver(podworkers.Observer{
		StateChanged: func(pod podmill.PodRef, from, to podworkers.State) { note("%s: %v -> %v", pod.UID, from, to) },
		SyncStarted:  func(pod podmill.PodRef, during podworkers.State) { note("%s: %v", pod.UID, during) },
		SyncEnded: func(pod podmill.PodRef, during podworkers.State, took time.Duration, err error) {
			note("%s: %v took %v: %v", pod.UID, during, took, err)
		},
	}))
	want := []string{
		"a: waiting -> syncing",
		"a: syncing",
		"a: syncing -> terminating",
		"a: syncing took 1s: context canceled",
		"a: terminating",
		"a: terminating took 2s: <nil>",
		"a: terminating -> terminated",
		"a: terminated",
		"a: terminated took 0s: it does not work",
		"a: terminated",
		"a: terminated took 0s: <nil>",
		"a: terminated -> finished",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Else the end of that sync, which is told by another goroutine, might be told first.
func TestAChangeOfStateIsToldBeforeASyncIsCancelledForIt(t *testing.T) {
	var inFlight context.Context
	told := false
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		s.SyncPodFunc = func(ctx context.Context, _ *corev1.Pod) (*podmill.Kill, error) {
			inFlight = ctx
			return nil, sleep(ctx, time.Hour)
		}
		w.Update(pod("a"))
		pass(time.Second)
		w.Remove("a")
		pass(time.Minute)
	}, podworkers.WithObserver(podworkers.Observer{StateChanged: func(_ podmill.PodRef, _, to podworkers.State) {
		if to == podworkers.Terminating {
			told = inFlight.Err() == nil
		}
	}}))
	if !told {
		t.Error("the sync was cancelled first")
	}
}

func TestFailuresAreLoggedAndCancellationsAreNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
		s := &story{began: time.Now()}
		s.SyncPodFunc = func(ctx context.Context, p *corev1.Pod) (*podmill.Kill, error) {
			if p.UID == "a" {
				return nil, errSync
			}
			return nil, sleep(ctx, time.Hour)
		}
		w := podworkers.New(s)
		w.Update(pod("a"))
		w.Update(pod("b"))
		ctx, cancel := context.WithTimeout(logr.NewContext(t.Context(), log), time.Millisecond)
		defer cancel()
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
		want := []string{`"msg"="sync failed" "error"="it does not work" "pod"="default/a(a)" "state"="syncing"`}
		if diff := cmp.Diff(want, lines); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

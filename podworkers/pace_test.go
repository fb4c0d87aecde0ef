package podworkers_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podworkers"
)

// times runs workers on one pod for some time and returns the moments at which it was synced.
func times(t *testing.T, d time.Duration, err func(n int) error, opts ...podworkers.Option) (at []time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &story{began: time.Now()}
		s.SyncPodFunc = func(context.Context, *corev1.Pod) (*podmill.Kill, error) {
			at = append(at, time.Since(s.began))
			return nil, err(len(at))
		}
		w := podworkers.New(s, opts...)
		w.Update(pod("a"))
		stop := start(t, w)
		pass(d)
		stop()
	})
	return at
}

func TestAPodIsSyncedNowAndThenInAnyCase(t *testing.T) {
	at := times(t, 24*time.Hour, func(int) error { return nil })
	seen := map[time.Duration]bool{}
	for i := 1; i < len(at); i++ {
		gap := at[i] - at[i-1]
		if gap < time.Minute || gap > 90*time.Second {
			t.Errorf("sync %d came after %v", i, gap)
		}
		seen[gap] = true
	}
	if len(at) < 24*60*60/90 || len(seen) < 100 {
		t.Errorf("%d syncs, %d different gaps", len(at), len(seen))
	}
}

func TestASyncThatFailsIsRepeatedLaterAndLater(t *testing.T) {
	const recovers = 20
	at := times(t, 10*time.Minute, func(n int) error {
		if n == recovers || n > recovers+3 {
			return nil
		}
		return errSync
	}, podworkers.WithBackoff(time.Second, 10*time.Second))
	for i := 1; i < len(at); i++ {
		most := min(10*time.Second, time.Second<<min(i-1, 10))
		switch {
		case i == recovers || i > recovers+3:
			continue // a resync
		case i > recovers:
			most = time.Second << (i - recovers - 1)
		}
		if gap := at[i] - at[i-1]; gap < most/2 || gap > most {
			t.Errorf("try %d came after %v, not %v", i+1, gap, most)
		}
	}
	if len(at) < recovers+4 {
		t.Errorf("%d tries in ten minutes", len(at))
	}
}

func TestEachStateStartsWithoutTheTroublesOfTheOneBefore(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		s.SyncPodFunc = func(context.Context, *corev1.Pod) (*podmill.Kill, error) { return nil, errSync }
		w.Update(pod("a"))
		pass(time.Hour)
		if p := w.Pods()[0]; p.Failures < 100 || !errors.Is(p.Err, errSync) {
			t.Errorf("%+v", p)
		}
		s.told()
		s.StopFunc = untilDeadline
		w.Remove("a")
		if p := w.Pods()[0]; p.Failures != 0 || p.Err != nil {
			t.Errorf("%+v", p)
		}
		pass(time.Minute)
		s.expect(t, `
			1h0m0s stop a by 1h0m30s
			1h0m30s clean a`)
	})
}

func TestStoppingAndCleaningUpAreRepeatedToo(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		stops, cleans := 0, 0
		s.StopFunc = func(context.Context, *corev1.Pod, podmill.Termination) error {
			if stops++; stops < 3 {
				return errSync
			}
			return nil
		}
		s.CleanFunc = func(context.Context, *corev1.Pod) error {
			if cleans++; cleans < 3 {
				return errSync
			}
			return nil
		}
		w.Update(pod("a"))
		w.Remove("a")
		pass(time.Minute)
		if stops != 3 || cleans != 3 {
			t.Errorf("%d stops, %d clean-ups", stops, cleans)
		}
		expectStates(t, w)
	}, podworkers.WithBackoff(time.Second, time.Second))
}

func TestARetryComesBeforeAResync(t *testing.T) {
	var failed time.Time
	var took time.Duration
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		w.Update(pod("a"))
		w.Update(pod("b"))
		s.SyncPodFunc = func(context.Context, *corev1.Pod) (*podmill.Kill, error) {
			if failed.IsZero() {
				failed = time.Now()
				return nil, errSync
			}
			took = time.Since(failed)
			return nil, nil
		}
		w.Sync("a")
		pass(time.Second)
		if took == 0 {
			t.Error("there was none")
		}
	}, podworkers.WithResync(time.Minute))
}

func TestAHintShortensABackoffToItsFirstStep(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		n := 0
		s.SyncPodFunc = func(context.Context, *corev1.Pod) (*podmill.Kill, error) {
			n++
			w.Sync("a") // what a failing sync does makes the runtime send events
			return nil, errSync
		}
		w.Update(pod("a"))
		pass(10 * time.Second)
		if n < 10 || n > 21 {
			t.Errorf("%d syncs in ten seconds", n)
		}
		before := n
		w.Update(pod("a", v("2"))) // a new spec may be the cure: it does not wait
		synctest.Wait()
		if n != before+1 {
			t.Errorf("a new spec led to %d syncs", n-before)
		}
	}, podworkers.WithBackoff(time.Second, time.Hour))
}

func TestOneStuckPodDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unblock := make(chan struct{})
		var synced atomic.Int32
		s := &story{SyncPodFunc: func(_ context.Context, pod *corev1.Pod) (*podmill.Kill, error) {
			if pod.Namespace == "stuck" {
				<-unblock
			}
			synced.Add(1)
			return nil, nil
		}}
		w := podworkers.New(s)
		both := func(uid string) {
			w.Update(pod(uid, func(pod *corev1.Pod) { pod.Namespace = "stuck" }))
			w.Update(pod(uid + "-well"))
		}
		for _, uid := range []string{"a", "b", "c"} {
			both(uid)
		}
		stop := start(t, w)
		for _, uid := range []string{"d", "e", "f"} {
			both(uid)
		}
		synctest.Wait()
		if n := synced.Load(); n != 6 {
			t.Errorf("%d of 6 were synced", n)
		}
		close(unblock)
		stop()
	})
}

func TestABoundOnParallelSyncs(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		var running, most atomic.Int32
		s.SyncPodFunc = func(ctx context.Context, _ *corev1.Pod) (*podmill.Kill, error) {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			return nil, sleep(ctx, time.Second)
		}
		for _, uid := range []string{"a", "b", "c", "d", "e"} {
			w.Update(pod(uid))
		}
		pass(1500 * time.Millisecond)
		w.Update(pod("e", v("2"))) // waits for a place with the newest spec
		w.Remove("e")
		pass(time.Minute)
		s.expect(t, `
			0s sync a
			0s sync b
			1s sync c
			1s sync d
			2s stop e/2 by 32s
			2s clean e/2`)
		if most.Load() != 2 {
			t.Errorf("%d syncs ran at a time", most.Load())
		}
	}, podworkers.WithParallel(2))
}

package image

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podmill/podmill"
)

// TestOnePullForAll shows that pods that ask at a time for an image with the same credentials share one call, that others do not, and that
// each of them has a back-off of its own.
func TestOnePullForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(takes(time.Second, errors.New("no route to host")))
		p := New(s)
		alice := []podmill.ImageAuth{{Username: "alice", Password: "1", ServerAddress: "docker.io"}}
		var pods sync.WaitGroup
		ask := func(pod, image string, auths []podmill.ImageAuth) {
			pods.Go(func() {
				_, err := p.EnsureImage(t.Context(), newPod(pod), container(image), nil, auths)
				if r, _ := reasonOf(err); r != "ErrImagePull" {
					t.Errorf("%s: %v", pod, err)
				}
				wantRetryIn(t, err, 10*time.Second)
			})
		}
		for i := range 10 {
			ask(fmt.Sprint("plain", i), "img", nil)
			ask(fmt.Sprint("alice", i), "img", alice)
		}
		ask("plain0", "img", nil) // a second container of the first pod
		ask("other", "img2", nil)
		pods.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		count := map[string]int{}
		for _, call := range s.calls {
			count[call]++
		}
		// With alice's credentials twice as many calls: with them, and without.
		if count["pull img:latest as alice"] != 1 || count["pull img:latest as nobody"] != 2 || count["pull img2:latest as nobody"] != 1 {
			t.Errorf("got %v", count)
		}
	})
}

// TestWhoGivesUp shows that a pod that waits no more returns at once and leaves the pull to the others, and that the last one ends it.
func TestWhoGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cancelled atomic.Int32
		s := newStore(func(ctx context.Context, what *podmill.ImagePull) error {
			err := takes(time.Minute, nil)(ctx, what)
			if err != nil {
				cancelled.Add(1)
				time.Sleep(time.Hour) // a runtime that is slow to let go
			}
			return err
		})
		events := &told{}
		p, start := New(s, WithEvents(events)), time.Now()
		ask := func(name string, gives time.Duration) <-chan error {
			ctx, cancel := context.WithTimeout(t.Context(), gives)
			done := make(chan error, 1)
			go func() {
				defer cancel()
				_, err := p.EnsureImage(ctx, newPod(name), container("img"), nil, nil)
				done <- err
			}()
			synctest.Wait()
			return done
		}
		first, second := ask("first", 10*time.Second), ask("second", time.Hour)
		if err := <-first; !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 10*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if err := <-second; err != nil || time.Since(start) != time.Minute {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if cancelled.Load() != 0 {
			t.Error("the pull was cancelled under the second pod")
		}

		last := ask("last", 10*time.Second)
		if err := <-last; !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 70*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		synctest.Wait()
		if cancelled.Load() != 1 {
			t.Error("nobody waits, and the pull goes on")
		}
		// Who comes now is not taken for one of those who gave up, and nobody's failure was counted.
		if err := <-ask("last", time.Hour); err != nil {
			t.Error(err)
		}
		for _, line := range events.lines {
			if strings.Contains(line, "Failed") || strings.Contains(line, "BackOff") {
				t.Error(line)
			}
		}
		time.Sleep(2 * time.Hour)
	})
}

// TestGivenUpBefore shows that nothing is pulled for a pod whose context has ended.
func TestGivenUpBefore(t *testing.T) {
	s := newStore(nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New(s).EnsureImage(ctx, newPod("web"), container("img"), nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	s.wantCalls(t)
}

// TestMaxParallel shows that no more images are pulled at a time than allowed, that one who waits for a turn can give up, and what is told of the
// time that was spent waiting.
func TestMaxParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		s := newStore(func(ctx context.Context, what *podmill.ImagePull) error {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			return takes(time.Second, nil)(ctx, what)
		})
		events := &told{}
		p, start := New(s, WithMaxParallel(2), WithEvents(events)), time.Now()
		var pods sync.WaitGroup
		for i := range 6 {
			pods.Go(func() {
				if _, err := p.EnsureImage(t.Context(), newPod("web"), container(fmt.Sprint("img", i)), nil, nil); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		pods.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
			defer cancel()
			if _, err := p.EnsureImage(ctx, newPod("web"), container("late"), nil, nil); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		})
		pods.Wait()
		if most.Load() != 2 || time.Since(start) != 3*time.Second {
			t.Errorf("%d at a time, %v in all", most.Load(), time.Since(start))
		}
		waited := 0
		for _, line := range events.lines {
			if strings.Contains(line, "in 1s (3s including waiting)") {
				waited++
			}
		}
		if waited != 2 {
			t.Errorf("%d waited for two others: %q", waited, events.lines)
		}
	})
}

// TestNoBoundIsTheDefault shows that a slow image holds up no other.
func TestNoBoundIsTheDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, start := New(newStore(takes(time.Second, nil)), WithMaxParallel(1), WithMaxParallel(0)), time.Now()
		var pods sync.WaitGroup
		for i := range 50 {
			pods.Go(func() { _, _ = p.EnsureImage(t.Context(), newPod("web"), container(fmt.Sprint("img", i)), nil, nil) })
		}
		pods.Wait()
		if time.Since(start) != time.Second {
			t.Errorf("took %v", time.Since(start))
		}
	})
}

package cri

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"pgregory.net/rapid"
)

// queue is turns in virtual time, and how many calls are under way.
type queue struct {
	*turns
	t        testing.TB
	underWay int
	most     int
}

func newQueue(t testing.TB, n, idle int) *queue {
	return &queue{t: t, turns: &turns{free: n, idle: func() int { return idle }}}
}

// call takes a turn and holds it for a while.
func (q *queue) call(ctx context.Context, u urgency, took time.Duration) error {
	done, err := q.take(ctx, u)
	if err != nil {
		return err
	}
	defer done()
	q.mu.Lock()
	q.underWay++
	q.most = max(q.most, q.underWay)
	q.mu.Unlock()
	time.Sleep(took)
	q.mu.Lock()
	q.underWay--
	q.mu.Unlock()
	return nil
}

// allBack fails the test if a turn was lost, or given twice.
func (q *queue) allBack(n int) {
	q.t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.free != n || len(q.waiting) > 0 {
		q.t.Errorf("%d turns are free and %d calls wait, want %d and none", q.free, len(q.waiting), n)
	}
}

func TestNoMoreCallsAreUnderWayThanThereAreProcessors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, 2, 0)
		began := time.Now()
		for range 30 {
			go func() { _ = q.call(t.Context(), urgency{}, time.Second) }()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if q.most != 2 {
			t.Errorf("%d calls were under way, want 2", q.most)
		}
		q.allBack(2)
		if err := q.call(t.Context(), urgency{}, 0); err != nil || time.Since(began) != time.Minute {
			t.Errorf("a call that is alone had to wait until %v: %v", time.Since(began), err)
		}
	})
}

func TestWhatHasBegunIsBroughtToItsEndFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, 1, 0)
		var order []string
		for _, c := range []struct {
			name string
			urgency
		}{
			{"first", urgency{}}, // is at once under way
			{"sandbox", urgency{}},
			{"next sandbox", urgency{}},
			{"critical sandbox", urgency{priority: 2_000_000_000}},
			{"container", urgency{stage: newContainer}},
			{"start", urgency{stage: madeContainer}},
			{"next start", urgency{stage: madeContainer}},
		} {
			go func() {
				done, _ := q.take(t.Context(), c.urgency)
				order = append(order, c.name)
				time.Sleep(time.Second)
				done()
			}()
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		want := []string{"first", "start", "next start", "container", "critical sandbox", "sandbox", "next sandbox"}
		if diff := cmp.Diff(want, order); diff != "" {
			t.Errorf("order of turns (-want +got):\n%s", diff)
		}
	})
}

func TestIdleProcessorsLetMoreIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, 2, 2) // all of them wait for a network, and for no processor
		began := time.Now()
		ended := make(chan struct{}, 30)
		for range 30 {
			go func() {
				_ = q.call(t.Context(), urgency{}, 5*time.Second)
				ended <- struct{}{}
			}()
		}
		for range 30 {
			<-ended
		}
		if took, want := time.Since(began), 5*time.Second+14*idleLook; took != want {
			t.Errorf("30 calls took %v, want %v", took, want)
		}
		time.Sleep(idleLook)
		q.allBack(2)
	})
}

func TestACallThatHangsKeepsNobodyOutForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, 2, 0)
		ctx, cancel := context.WithCancel(t.Context())
		for range 2 {
			go func() { _ = q.call(ctx, urgency{}, time.Hour) }()
		}
		synctest.Wait()
		began := time.Now()
		if err := q.call(ctx, urgency{}, 0); err != nil || time.Since(began) != longestTurn {
			t.Errorf("the third had its turn after %v, want %v: %v", time.Since(began), longestTurn, err)
		}
		cancel()
		time.Sleep(2 * time.Hour)
		q.allBack(2)
	})
}

func TestWhoGoesAwayLosesNoTurn(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n, calls := rapid.IntRange(1, 4).Draw(r, "turns"), rapid.IntRange(1, 40).Draw(r, "calls")
		idle, seed := rapid.IntRange(0, 2).Draw(r, "idle"), rapid.Uint64().Draw(r, "seed")
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test has to be repeatable
			q := newQueue(t, n, idle)
			for i := range calls {
				patience, took := time.Duration(random.IntN(5000))*time.Millisecond, time.Duration(random.IntN(5000))*time.Millisecond
				go func() {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					if err := q.call(ctx, urgency{stage: stage(i % 3)}, took); err != nil && !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("call %d: %v", i, err)
					}
				}()
				time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
			}
			time.Sleep(time.Hour)
			q.allBack(n)
		})
	})
}

// All three calls that start something wait for their turn, and what has not had it has not been asked for.
func TestAClientTakesTurns(t *testing.T) {
	began, goOn := make(chan string, 3), make(chan struct{})
	answers := func(method string, response any) answer {
		return func(context.Context, any) (any, error) {
			began <- method
			<-goOn
			return response, nil
		}
	}
	s := newServer(t).
		on("RunPodSandbox", answers("RunPodSandbox", &runtimeapi.RunPodSandboxResponse{PodSandboxId: "s"})).
		on("CreateContainer", answers("CreateContainer", &runtimeapi.CreateContainerResponse{ContainerId: "c"})).
		on("StartContainer", answers("StartContainer", &runtimeapi.StartContainerResponse{})).
		start(t)
	c, err := Dial(t.Context(), s.path, WithParallelStarts(0))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.turns = &turns{free: 1, idle: func() int { return 0 }, stat: io.NopCloser(nil)} // however idle this machine is
	sandbox := sandboxSpec(testPod())
	container := containerSpec(sandbox, 0)
	errs := make(chan error, 3)
	go func() { _, err := c.RunSandbox(t.Context(), sandbox); errs <- err }()
	seen := []string{<-began}
	ask := func(n int, do func() error) {
		go func() { errs <- do() }()
		for { // until it waits
			c.turns.mu.Lock()
			waiting := len(c.turns.waiting)
			c.turns.mu.Unlock()
			if waiting == n {
				return
			}
			select {
			case err := <-errs:
				t.Fatalf("a call did not wait for its turn: %v", err)
			case <-time.After(time.Millisecond): // in real time: the server is on a socket
			}
		}
	}
	ask(1, func() error { _, err := c.CreateContainer(t.Context(), container); return err })
	ask(2, func() error { return c.StartContainer(t.Context(), "c") })

	gone, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the pod is deleted"))
	if err := c.StartContainer(gone, "d"); !errors.Is(err, context.Canceled) || err.Error() != "StartContainer d: the pod is deleted" {
		t.Errorf("a call that is given up before its turn: %v", err)
	}
	for range 2 {
		goOn <- struct{}{}
		seen = append(seen, <-began)
	}
	goOn <- struct{}{}
	for range 3 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff([]string{"RunPodSandbox", "StartContainer", "CreateContainer"}, seen); diff != "" {
		t.Errorf("calls in the order in which they were made (-want +got):\n%s", diff)
	}
}

func TestParallelStarts(t *testing.T) {
	for n, bounded := range map[int]bool{0: false, 1: true, 64: true} {
		turns := newTurns(n)
		if got := turns != nil; got != (bounded && runtime.GOOS == "linux") {
			t.Errorf("%d parallel starts: bounded %v, want %v", n, got, bounded)
		}
	}
	if _, err := newClient("/run/cri.sock", []Option{WithParallelStarts(-1)}); err == nil {
		t.Error("-1 parallel starts are accepted")
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		stat        string
		idle, total uint64
		ok          bool
	}{
		{"cpu  10 1 20 300 5 6 7 8 9 10\ncpu0 1 2 3 4\n", 300, 357, true},
		{"cpu  10 1 20 300\n", 300, 331, true}, // of an old kernel
		{"", 0, 0, false},
		{"intr 1 2 3 4 5\n", 0, 0, false},
		{"cpu  10 1 20 many 5\n", 0, 0, false},
	} {
		idle, total, ok := ticks([]byte(c.stat))
		if got := fmt.Sprint(idle, total, ok); got != fmt.Sprint(c.idle, c.total, c.ok) {
			t.Errorf("ticks(%q) = %s, want %d %d %v", c.stat, got, c.idle, c.total, c.ok)
		}
	}
}

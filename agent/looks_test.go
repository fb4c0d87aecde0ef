package agent_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	. "github.com/podmill/podmill/podmilltest"
)

// wrongClock is a runtime whose clock was set: the times that it tells are off, for each attempt by another amount.
type wrongClock struct {
	podmill.Runtime
	off func(attempt uint32) time.Duration
}

func (c *wrongClock) Unwrap() podmill.Runtime { return c.Runtime }

func (c *wrongClock) InspectPod(ctx context.Context, uid types.UID) (*podmill.RuntimePod, error) {
	seen, err := c.Runtime.InspectPod(ctx, uid)
	if err != nil {
		return nil, err
	}
	for i := range seen.Sandboxes {
		s := &seen.Sandboxes[i]
		s.CreatedAt = s.CreatedAt.Add(c.off(s.Attempt))
	}
	for i := range seen.Containers {
		at := &seen.Containers[i]
		for _, t := range []*time.Time{&at.CreatedAt, &at.StartedAt, &at.FinishedAt} {
			if !t.IsZero() {
				*t = t.Add(c.off(at.Attempt))
			}
		}
	}
	return seen, nil
}

// B010: each instance of a container seems to be older than the one before it, for the clock goes back. It is the newest all the same: no attempt is
// made twice, and each restart counts.
func TestAClockThatGoesBackRepeatsNoAttempt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.use = &wrongClock{w.rt, func(attempt uint32) time.Duration { return -time.Duration(attempt) * time.Hour }}
		pod := Pod("web", static, Container("server", "busybox:1"))
		w.start()
		w.file.Replace(pod)
		w.pass(time.Second)
		for n := range int32(5) {
			w.rt.KillProcess(pod.UID, "server", 137)
			w.pass(6 * time.Minute) // longer than any back-off
			c := w.wantPhase(pod, corev1.PodRunning).Status.ContainerStatuses[0]
			if c.RestartCount != n+1 || c.State.Running == nil {
				t.Fatalf("after %d ends: %+v\n%s", n+1, c, w.rt.Log())
			}
		}
		if n := w.rt.Log().Count(OpCreateContainer); n != 6 {
			t.Errorf("%d containers were created, want 6\n%s", n, w.rt.Log())
		}
	})
}

// B010: a dead sandbox is from the future. The one that takes its place is made once.
func TestADeadSandboxFromTheFutureIsReplacedOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.use = &wrongClock{w.rt, func(attempt uint32) time.Duration { return 2 * time.Hour * time.Duration(1-min(attempt, 1)) }}
		pod := Pod("web", static, Container("server", "busybox:1"))
		w.start()
		w.file.Replace(pod)
		w.pass(time.Second)
		w.rt.KillSandbox(pod.UID)
		w.pass(time.Hour)
		if c := w.wantPhase(pod, corev1.PodRunning).Status.ContainerStatuses[0]; c.State.Running == nil {
			t.Errorf("it does not run: %+v", c)
		}
		if n := w.rt.Log().Count(OpRunSandbox); n != 2 {
			t.Errorf("%d sandboxes, want 2\n%s", n, w.rt.Log())
		}
	})
}

// B027: that a look at a pod has failed is forgotten with the first one that does not, whether a listing shows a change or not.
func TestALookThatFailedIsForgotten(t *testing.T) {
	for _, times := range []int{1, 2, 5} {
		t.Run(fmt.Sprint(times), func(t *testing.T) {
			inWorld(t, func(w *world) {
				faulty := Faulty(w.rt)
				w.use = faulty
				pod := Pod("web", static, Container("server", "busybox:1"), Grace(time.Second))
				w.start()
				w.file.Replace(pod)
				w.pass(time.Second)
				faulty.Add(Fault{On: OpInspectPod, Pod: pod.UID, Times: times, Effect: Fail(errors.New("shim is busy"))})
				w.rt.KillProcess(pod.UID, "server", 1)
				w.file.Delete(pod)
				w.pass(2 * time.Minute)
				w.wantGone(pod)
			})
		})
	}
}

// B038: a stop that times out is made again, with pauses, for as long as the container runs; nothing piles up, and the pod ends when the container has.
func TestAStopThatTimesOutIsMadeAgainUntilTheContainerHasEnded(t *testing.T) {
	inWorld(t, func(w *world) {
		var tries atomic.Int32
		w.use = Faulty(w.rt, Fault{On: OpStopContainer, Effect: Effect{Name: "times out", Call: func(context.Context, func() error) error {
			tries.Add(1)
			return context.DeadlineExceeded
		}}})
		pod := Pod("web", static, Container("server", "busybox:1"), Grace(time.Second))
		w.start()
		w.file.Replace(pod)
		w.pass(time.Second)
		before := runtime.NumGoroutine()
		w.file.Delete(pod)
		w.pass(10 * time.Minute)
		if n := runtime.NumGoroutine(); n > before+2 {
			t.Errorf("%d goroutines, %d before", n, before)
		}
		if n := tries.Load(); n < 5 || n > 120 {
			t.Errorf("%d tries within ten minutes", n)
		}
		w.rt.KillProcess(pod.UID, "server", 137)
		w.pass(2 * time.Minute)
		w.wantGone(pod)
	})
}

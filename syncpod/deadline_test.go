package syncpod_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podmill/podmill"
	. "github.com/podmill/podmill/podmilltest"
)

// A manifest is removed, and put back while the agent is down that had begun to stop the pod. When it is removed again, some day, the pod has
// its whole grace.
func TestAnEndThatWasCalledOffLeavesNoDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		pod := Pod("web", Container("server", "busybox:1", Runs("trap '' TERM; sleep inf")), Grace(40*time.Second))
		sync := func() {
			if _, err := r.SyncPod(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
		}
		end := func(patience time.Duration) time.Duration {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			err := r.SyncTerminatingPod(ctx, pod, podmill.Termination{Deadline: began.Add(40 * time.Second), GracePeriodSeconds: 40})
			if ctx.Err() == nil && err != nil {
				t.Fatal(err)
			}
			return time.Since(began)
		}
		sync()
		end(10 * time.Second)
		r.restart()
		sync()
		time.Sleep(time.Hour)
		if took := end(time.Hour); took != 40*time.Second {
			t.Errorf("the pod got %v of its 40s\n%s", took, r.rt.Log())
		}
	})
}

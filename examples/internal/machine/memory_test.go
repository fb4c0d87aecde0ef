package machine

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

func TestABurstIsOverOnce(t *testing.T) {
	var b burst
	for i, look := range []struct {
		allocated uint64
		over      bool
	}{
		{3 * busy, false}, // the start of the process
		{5 * busy, false},
		{5*busy + busy/2, true},
		{6*busy + busy/4, false}, // a little, again and again
		{7 * busy, false},
		{9 * busy, false},
		{9 * busy, true},
		{9 * busy, false},
	} {
		if over := b.over(look.allocated); over != look.over {
			t.Errorf("look %d: over is %v", i, over)
		}
	}
}

func TestMemoryIsGivenBackWhenABurstIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- GiveBack(ctx) }()
		time.Sleep(5 * calm) // what the process has allocated until now is over

		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		garbage = make([]byte, 16<<20)
		clear(garbage)
		garbage = nil
		time.Sleep(calm + time.Second)
		runtime.ReadMemStats(&after)
		if n := after.NumForcedGC - before.NumForcedGC; n != 0 {
			t.Errorf("%d collections were forced in a burst", n)
		}
		time.Sleep(calm)
		runtime.ReadMemStats(&after)
		if n := after.NumForcedGC - before.NumForcedGC; n != 1 {
			t.Errorf("%d collections were forced when it was over, want 1", n)
		}
		if left := after.HeapIdle - after.HeapReleased; left > 4<<20 {
			t.Errorf("%d bytes of the heap are unused and were not given back", left)
		}
		time.Sleep(time.Hour)
		runtime.ReadMemStats(&after)
		if n := after.NumForcedGC - before.NumForcedGC; n != 1 {
			t.Errorf("%d collections were forced in an hour at rest, want no more", n)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

var garbage []byte // where the compiler has to make it

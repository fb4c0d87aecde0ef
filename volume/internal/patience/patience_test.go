package patience

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// What gets on may take any time. What stops to do so is cut off a while later, and it is told why.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := With(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		for range 100 {
			time.Sleep(59 * time.Second)
			Renew(ctx)
		}
		if ctx.Err() != nil {
			t.Fatalf("it ended while it was renewed: %v", context.Cause(ctx))
		}
		<-ctx.Done()
		if took := time.Since(start); took != 100*59*time.Second+time.Minute {
			t.Errorf("it ended after %v", took)
		}
		err := Cause(ctx, ctx.Err())
		if !errors.Is(err, context.DeadlineExceeded) || err.Error() != "there was no progress for 1m0s: context canceled" {
			t.Errorf("error %v", err)
		}
		if Renew(ctx); ctx.Err() == nil || Cause(ctx, nil) != nil {
			t.Error("it goes on")
		}
	})
}

// Its parent ends it whatever the progress, and then that is the cause.
func TestPatienceEndsWithItsParent(t *testing.T) {
	parent, end := context.WithCancel(t.Context())
	ctx, cancel := With(parent, time.Hour)
	defer cancel()
	Renew(parent) // has none
	Renew(ctx)
	end()
	if err := Cause(ctx, ctx.Err()); !errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

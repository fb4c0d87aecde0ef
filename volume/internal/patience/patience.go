// Package patience has contexts that end when nothing comes of what is waited for. What takes long and gets on with it says so, and has all the time that it needs; what hangs
// has not.
package patience

import (
	"context"
	"fmt"
	"time"
)

// With returns a context that ends when it was not renewed for a time, with an [Error] for its cause, or when its parent does. cancel ends it, and has to be called.
func With(parent context.Context, d time.Duration) (ctx context.Context, cancel context.CancelFunc) {
	ctx, end := context.WithCancelCause(parent)
	timer := time.AfterFunc(d, func() { end(Error(d)) })
	ctx = context.WithValue(ctx, key{}, func() { timer.Reset(d) })
	return ctx, func() { timer.Stop(); end(nil) }
}

// Renew says that there is progress: the patience of a context that has one begins anew. One that has ended stays so. It may be called at any time and any number of
// times, concurrently, and costs next to nothing.
func Renew(ctx context.Context) {
	if renew, ok := ctx.Value(key{}).(func()); ok {
		renew()
	}
}

type key struct{}

// Error says for how long there was no progress.
type Error time.Duration

func (e Error) Error() string { return fmt.Sprintf("there was no progress for %v", time.Duration(e)) }

// Is makes it a [context.DeadlineExceeded].
func (e Error) Is(target error) bool { return target == context.DeadlineExceeded }

// Cause returns an error with why it came to that, if that is a lack of patience: what waits for the end of a context has nothing to say but that it was canceled.
func Cause(ctx context.Context, err error) error {
	if cause, ok := context.Cause(ctx).(Error); ok && err != nil { //nolint:errorlint // it is never wrapped
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

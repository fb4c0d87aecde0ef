package cri

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/podmill/podmill"
)

// call makes a call with a deadline, and tells the observer. A timeout of zero leaves it to ctx.
func call[Q, R any](ctx context.Context, c *Client, method string, timeout time.Duration, do func(context.Context, Q, ...grpc.CallOption) (R, error), request Q) (R, error) {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %v: %w", timeout, context.DeadlineExceeded))
		defer cancel()
	}
	begin := time.Now()
	response, err := do(ctx, request)
	err = wrap(ctx, method, err)
	took := time.Since(begin)
	if c.opts.observer.Called != nil {
		c.opts.observer.Called(method, took, err)
	}
	logr.FromContextOrDiscard(ctx).V(4).Info("runtime call", "method", method, "took", took, "err", err)
	return response, err
}

// callError is a call that failed. It is what its kind is: podmill.ErrNotFound, errors.ErrUnsupported or a context's error, if
// the runtime or the context said so.
type callError struct {
	method  string
	code    codes.Code
	message string
	kind    error
}

func (e *callError) Error() string {
	return fmt.Sprintf("%s: %s", e.method, e.message)
}

func (e *callError) Unwrap() error { return e.kind }

func wrap(ctx context.Context, method string, err error) error {
	if err == nil {
		return nil
	}
	s := status.Convert(err)
	e := &callError{method: method, code: s.Code(), message: s.Message()}
	switch s.Code() {
	case codes.NotFound:
		e.kind = podmill.ErrNotFound
	case codes.Unimplemented:
		e.kind = errors.ErrUnsupported
	case codes.Canceled, codes.DeadlineExceeded:
		if e.kind = context.Cause(ctx); e.kind != nil {
			e.message = e.kind.Error()
		} else if s.Code() == codes.DeadlineExceeded {
			e.kind = context.DeadlineExceeded // the runtime's own, over something that it waited for
		}
	}
	return e
}

// absent makes "not found" a success: what is to be gone is.
func absent(err error) error {
	if errors.Is(err, podmill.ErrNotFound) {
		return nil
	}
	return err
}

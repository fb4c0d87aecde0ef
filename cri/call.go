package cri

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
)

// op says of a call what people ask when it fails.
type op struct {
	method  string        // CRI's name
	subject string        // what it is about
	timeout time.Duration // how long the runtime may take; zero leaves it to the context
}

// call makes a call with a deadline, and tells the observer.
func call[Q, R any](ctx context.Context, c *Client, o op, do func(context.Context, Q, ...grpc.CallOption) (R, error), request Q) (R, error) {
	bounded := ctx
	if o.timeout > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	begin := time.Now()
	response, err := do(bounded, request)
	err = o.failed(ctx, bounded, err)
	c.called(ctx, o, begin, err)
	return response, err
}

// id returns what a call returned as the ID of what it made. A runtime that returns none has failed.
func (o op) id(id string, err error) (string, error) {
	if err == nil && id == "" {
		err = fmt.Errorf("%s %s: the runtime returned no ID", o.method, o.subject)
	}
	return id, err
}

// called tells of a call that has ended. What was asked is not told: it may hold credentials.
func (c *Client) called(ctx context.Context, o op, begin time.Time, err error) {
	took := time.Since(begin)
	if c.opts.observer.Called != nil {
		c.opts.observer.Called(o.method, took, err)
	}
	if log := logr.FromContextOrDiscard(ctx).V(4); log.Enabled() {
		log.Info("runtime call", "method", o.method, "subject", o.subject, "took", took, "err", err)
	}
}

package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/podmill/podmill"
)

// answerWithin is how long a runtime may take to say how it is.
const answerWithin = 10 * time.Second

// runtimeState is what the runtime says of itself.
type runtimeState struct {
	reporter podmill.StatusReporter // nil where the runtime does not say

	mu     sync.Mutex
	called string    // as container IDs are prefixed with; empty where the runtime does not say
	ready  bool      // the runtime said that it has a network, and nothing has gone wrong since
	asking *question // under way
}

// question is one that several pods wait for the answer of.
type question struct {
	over chan struct{} // closed when there is an answer
	err  error
	void bool // the one who asked did not wait for the answer
}

func newRuntimeState(runtime podmill.Runtime) *runtimeState {
	reporter, _ := podmill.As[podmill.StatusReporter](runtime)
	return &runtimeState{reporter: reporter}
}

// meet asks the runtime for its name until it answers or ctx ends. It comes before everything else: without the name, the IDs of
// containers that run already would be told in another way than before.
func (r *runtimeState) meet(ctx context.Context) {
	if r.reporter == nil {
		return
	}
	log := logr.FromContextOrDiscard(ctx)
	for said := false; ; said = true {
		status, err := r.ask(ctx)
		if err == nil || errors.Is(err, errors.ErrUnsupported) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.called, r.ready = status.Name, status.NetworkReady.OK
			return
		}
		if !said && ctx.Err() == nil {
			log.Error(err, "the runtime does not answer, waiting for it")
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
}

func (r *runtimeState) ask(ctx context.Context) (podmill.RuntimeStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	status, err := r.reporter.RuntimeStatus(ctx)
	if err != nil {
		return podmill.RuntimeStatus{}, fmt.Errorf("ask the runtime how it is: %w", err)
	}
	return *status, nil
}

// name is the runtime's name.
func (r *runtimeState) name() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.called
}

// networkReady returns why pods cannot have a network of their own, nil if they can. A runtime that has said so is believed until a sandbox fails: one that has lost its
// network since runs none, and a start does not wait for an answer that is known. Pods that start together ask once.
func (r *runtimeState) networkReady(ctx context.Context) error {
	if r.reporter == nil {
		return nil
	}
	for {
		r.mu.Lock()
		if r.ready {
			r.mu.Unlock()
			return nil
		}
		q := r.asking
		if q == nil {
			q = &question{over: make(chan struct{})}
			r.asking = q
			r.mu.Unlock()
			return r.answer(ctx, q)
		}
		r.mu.Unlock()
		select {
		case <-q.over:
		case <-ctx.Done():
			return ctx.Err()
		}
		if !q.void {
			return q.err
		}
	}
}

// answer asks the runtime, and tells all who wait.
func (r *runtimeState) answer(ctx context.Context, q *question) error {
	q.err = r.askForNetwork(ctx)
	q.void = q.err != nil && ctx.Err() != nil
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ready, r.asking = q.err == nil, nil
	close(q.over)
	return q.err
}

// doubt has the runtime asked again before the next sandbox.
func (r *runtimeState) doubt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ready = false
}

func (r *runtimeState) askForNetwork(ctx context.Context) error {
	status, err := r.ask(ctx)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return err
	}
	if c := status.NetworkReady; !c.OK {
		return fmt.Errorf("container runtime network not ready: NetworkReady=false reason:%s message:%s", c.Reason, c.Message)
	}
	return nil
}

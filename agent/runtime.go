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

const (
	// readyFor is how long a runtime that said it is ready is believed: a pod's start does not ask again.
	readyFor = 30 * time.Second
	// answerWithin is how long a runtime may take to say how it is.
	answerWithin = 10 * time.Second
)

// runtimeState is what the runtime says of itself.
type runtimeState struct {
	reporter podmill.StatusReporter // nil where the runtime does not say

	mu     sync.Mutex
	called string // as container IDs are prefixed with; empty where the runtime does not say
	lastOK time.Time
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
			r.called = status.Name
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

// networkReady returns why pods cannot have a network of their own, nil if they can.
func (r *runtimeState) networkReady(ctx context.Context) error {
	if r.reporter == nil {
		return nil
	}
	r.mu.Lock()
	fresh := !r.lastOK.IsZero() && time.Since(r.lastOK) < readyFor
	r.mu.Unlock()
	if fresh {
		return nil
	}
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
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastOK = time.Now()
	return nil
}

package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/podmill/podmill"
)

// readyFor is how long a runtime that said it is ready is believed: a pod's start does not ask again.
const readyFor = 30 * time.Second

// runtimeState is what the runtime says of itself.
type runtimeState struct {
	reporter podmill.StatusReporter // nil where the runtime does not say

	mu     sync.Mutex
	known  podmill.RuntimeStatus
	lastOK time.Time
}

func newRuntimeState(runtime podmill.Runtime) *runtimeState {
	reporter, _ := podmill.As[podmill.StatusReporter](runtime)
	return &runtimeState{reporter: reporter}
}

// name is the runtime's name, as container IDs are prefixed with; empty until it was heard.
func (r *runtimeState) name() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known.Name
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
	status, err := r.reporter.RuntimeStatus(ctx)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("ask the runtime whether its network is ready: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known = *status
	if c := status.NetworkReady; !c.OK {
		return fmt.Errorf("container runtime network not ready: NetworkReady=false reason:%s message:%s", c.Reason, c.Message)
	}
	r.lastOK = time.Now()
	return nil
}

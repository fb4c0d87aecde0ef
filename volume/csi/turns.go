package csi

import (
	"context"
	"sync"
)

// turns lets one call at a time work on a volume, wherever it is used.
type turns struct {
	mu   sync.Mutex
	held map[string]*turn
}

type turn struct {
	token chan struct{}
	users int // who has it, and who waits
}

// take waits for a volume's turn, and returns what ends it.
func (t *turns) take(ctx context.Context, key string) (done func(), err error) {
	t.mu.Lock()
	if t.held == nil {
		t.held = map[string]*turn{}
	}
	own := t.held[key]
	if own == nil {
		own = &turn{token: make(chan struct{}, 1)}
		t.held[key] = own
	}
	own.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(t.held, key)
		}
	}
	select {
	case own.token <- struct{}{}:
		return func() { <-own.token; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}

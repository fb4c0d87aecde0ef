package volume

import (
	"context"
	"sync"
)

// turns lets one caller at a time have what has a name. The zero value is ready.
type turns struct {
	mu    sync.Mutex
	taken map[string]chan struct{} // closed when the turn is over
}

// take waits for the turn, and returns what ends it.
func (t *turns) take(ctx context.Context, name string) (over func(), err error) {
	for {
		t.mu.Lock()
		before := t.taken[name]
		if before == nil {
			if t.taken == nil {
				t.taken = map[string]chan struct{}{}
			}
			mine := make(chan struct{})
			t.taken[name] = mine
			t.mu.Unlock()
			return func() {
				t.mu.Lock()
				delete(t.taken, name)
				t.mu.Unlock()
				close(mine)
			}, nil
		}
		t.mu.Unlock()
		select {
		case <-before:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

package syncloop

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Inbox gathers the pods that something has happened to, each once, until the loop comes for them. It is made before the loop
// and handed to all who have something to say: the PLEG, probes, watchers of objects, timers. Its size is bounded by the pods,
// whatever happens to them.
type Inbox struct {
	wake chan struct{} // holds one token while there is something to take

	mu      sync.Mutex
	waiting map[types.UID]struct{}
	order   []types.UID // those in waiting, the longest first
}

// NewInbox returns an empty inbox.
func NewInbox() *Inbox {
	return &Inbox{wake: make(chan struct{}, 1), waiting: map[types.UID]struct{}{}}
}

// Put says that a pod should be looked at. It never blocks, and may be called concurrently. A pod that waits already waits once.
func (b *Inbox) Put(pod types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.waiting[pod]; ok {
		return
	}
	b.waiting[pod] = struct{}{}
	b.order = append(b.order, pod)
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// take empties the inbox. The memory of an earlier batch is used for what comes next.
func (b *Inbox) take(batch []types.UID) []types.UID {
	b.mu.Lock()
	defer b.mu.Unlock()
	batch, b.order = b.order, batch[:0]
	for _, pod := range batch {
		delete(b.waiting, pod)
	}
	return batch
}

package machine

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	calm  = 10 * time.Second // with less than busy allocated in it, a busy time is over
	busy  = 1 << 20          // bytes: what an agent of a few hundred pods at rest stays far below
	total = "/gc/heap/allocs:bytes"
)

// GiveBack is a [Part] that gives back to the machine what memory a busy time has left unused, when that is over. Go's collector keeps as much room again as is
// in use, and what a burst had beyond that for minutes and longer, for the next burst; that of a node may be days away, and its pods want the memory now. It
// costs one collection after each burst, and leaves GOGC and GOMEMLIMIT to whoever starts the agent.
func GiveBack(ctx context.Context) error {
	tick := time.NewTicker(calm)
	defer tick.Stop()
	sample := []metrics.Sample{{Name: total}}
	for b := (burst{}); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		metrics.Read(sample)
		if b.over(sample[0].Value.Uint64()) {
			debug.FreeOSMemory()
		}
	}
}

// burst finds the end of busy times.
type burst struct {
	allocated uint64 // by the process so far, when it was last looked at
	on        bool
}

// over reports that a busy time has ended since the last look, at a process that has allocated so much so far.
func (b *burst) over(allocated uint64) bool {
	was := b.on
	b.on = allocated-b.allocated >= busy
	b.allocated = allocated
	return was && !b.on
}

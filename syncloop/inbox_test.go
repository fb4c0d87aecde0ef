package syncloop

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func uids(n int) []types.UID {
	all := make([]types.UID, n)
	for i := range all {
		all[i] = types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", i, i))
	}
	return all
}

func TestInboxKeepsTheOrderAndEachPodOnce(t *testing.T) {
	b := NewInbox()
	for _, uid := range []types.UID{"a", "b", "a", "c", "b"} {
		b.Put(uid)
	}
	batch := b.take(nil)
	if d := cmp.Diff([]types.UID{"a", "b", "c"}, batch); d != "" {
		t.Error(d)
	}
	b.Put("b") // while the batch is being worked on
	if d := cmp.Diff([]types.UID{"b"}, b.take(batch)); d != "" {
		t.Error(d)
	}
	if more := b.take(nil); len(more) != 0 {
		t.Errorf("still there: %v", more)
	}
}

func TestInboxLosesNothing(t *testing.T) {
	b, all := NewInbox(), uids(100)
	var putters sync.WaitGroup
	for range 4 {
		putters.Go(func() {
			for range 100 {
				for _, uid := range all {
					b.Put(uid)
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() { putters.Wait(); close(ended) }()
	seen := map[types.UID]bool{}
	var batch []types.UID
	for open := true; open; {
		select {
		case <-b.wake:
		case <-ended:
			open = false
		}
		batch = b.take(batch)
		if len(batch) > len(all) {
			t.Fatalf("%d keys of %d pods", len(batch), len(all))
		}
		for _, uid := range batch {
			seen[uid] = true
		}
	}
	if len(seen) != len(all) {
		t.Errorf("%d of %d pods", len(seen), len(all))
	}
}

func TestInboxAllocatesNothingOnceItHasGrown(t *testing.T) {
	b, all := NewInbox(), uids(500)
	var batch []types.UID
	round := func() {
		for _, uid := range all {
			b.Put(uid)
			b.Put(uid)
		}
		batch = b.take(batch)
	}
	round()
	round()
	if got := testing.AllocsPerRun(200, round); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

// BenchmarkInbox is the cost of a key, beside a mutex and a look-up in a map.
func BenchmarkInbox(b *testing.B) {
	all := uids(1000)
	b.Run("baseline=mutex+map", func(b *testing.B) {
		var mu sync.Mutex
		known := map[types.UID]struct{}{}
		for _, uid := range all {
			known[uid] = struct{}{}
		}
		found := 0
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			mu.Lock()
			if _, ok := known[all[i%len(all)]]; ok {
				found++
			}
			mu.Unlock()
		}
		if found == 0 {
			b.Fatal("nothing found")
		}
	})
	b.Run("put-one-that-waits", func(b *testing.B) {
		inbox := NewInbox()
		for _, uid := range all {
			inbox.Put(uid)
		}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			inbox.Put(all[i%len(all)])
		}
	})
	b.Run("put-and-take", func(b *testing.B) {
		inbox := NewInbox()
		var batch []types.UID
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			inbox.Put(all[i%len(all)])
			if i%100 == 99 {
				batch = inbox.take(batch)
			}
		}
	})
}

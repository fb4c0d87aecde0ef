package pleg

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

func uid(i int) types.UID {
	return types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", i*2654435761%(1<<32), i))
}

// still is a runtime in which nothing changes. It lists in another order each time, as containerd does.
type still struct {
	orders [4][]podmill.Item
	pods   map[string]*podmill.RuntimePod
	calls  int
}

func newStill(containers int) *still {
	r := &still{}
	var items []podmill.Item
	items, r.pods = listing(containers)
	for i := range r.orders {
		rand.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
		r.orders[i] = append([]podmill.Item(nil), items...)
	}
	return r
}

func (r *still) ListPods(_ context.Context, snap *podmill.Snapshot) error {
	r.calls++
	snap.Items = append(snap.Items[:0], r.orders[r.calls%len(r.orders)]...)
	return nil
}

func (r *still) InspectPod(_ context.Context, uid types.UID) (*podmill.RuntimePod, error) {
	if pod := r.pods[string(uid)]; pod != nil {
		return pod, nil
	}
	return &podmill.RuntimePod{PodRef: podmill.PodRef{UID: uid}}, nil
}

// settled returns a PLEG that has seen all that the runtime holds.
func settled(tb testing.TB, r *still) *PLEG {
	tb.Helper()
	p := New(r, func(types.UID) {})
	if err := p.relist(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	for range len(r.pods) {
		e := p.begin()
		p.look(tb.Context(), e)
		p.queue.room = p.opts.parallel
	}
	if pods, ok := p.Pods(); len(pods) != len(r.pods) || !ok || p.begin() != nil {
		tb.Fatalf("%d pods known of %d", len(pods), len(r.pods))
	}
	return p
}

func TestAListingThatChangesNothingAllocatesNothing(t *testing.T) {
	for _, containers := range []int{1000, 10_000} {
		r := newStill(containers)
		p := settled(t, r)
		got := testing.AllocsPerRun(20, func() {
			if err := r.ListPods(t.Context(), &p.listing); err != nil {
				t.Fatal(err)
			}
			p.learnListing()
		})
		if got != 0 {
			t.Errorf("%v allocations for %d containers", got, containers)
		}
		if p.begin() != nil {
			t.Error("an inspection was asked for")
		}
	}
}

func TestPodsThatTheRuntimeDoesNotHoldTakeNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newStill(30)
		p := New(r, func(types.UID) {})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- p.Run(ctx) }()
		for i := range 1000 {
			p.Hint(uid(i))
			if _, err := p.Observe(ctx, uid(1000+i), true); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * linger)
		synctest.Wait()
		p.mu.Lock()
		pods := len(p.pods)
		p.mu.Unlock()
		if pods != 10 {
			t.Errorf("%d pods are kept, want the 10 that the runtime holds", pods)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// BenchmarkRelist is the cost of a listing that changes nothing, beside a bare loop over the same listing.
func BenchmarkRelist(b *testing.B) {
	for _, containers := range []int{1000, 10_000} {
		r := newStill(containers)
		b.Run(fmt.Sprintf("containers=%d/baseline=loop", containers), func(b *testing.B) {
			b.ReportAllocs()
			var snap podmill.Snapshot
			running := 0
			for b.Loop() {
				_ = r.ListPods(b.Context(), &snap)
				for i := range snap.Items {
					if snap.Items[i].State == podmill.StateRunning {
						running++
					}
				}
			}
			if running == 0 {
				b.Fatal("nothing listed")
			}
		})
		b.Run(fmt.Sprintf("containers=%d/relist", containers), func(b *testing.B) {
			p := settled(b, r)
			b.ReportAllocs()
			for b.Loop() {
				_ = r.ListPods(b.Context(), &p.listing)
				p.learnListing()
			}
			if p.begin() != nil {
				b.Fatal("an inspection was asked for")
			}
		})
	}
}

package pleg

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/podmill/podmill"
)

// A burst of a million events takes the memory of the pods that they tell of, is taken without waiting for anything, and each pod that changed is
// looked at. One in three events is about what is known, one says only whose it is, one is about a container that nobody has seen.
func TestAMillionEventsAreBoundedByPods(t *testing.T) {
	r := newStill(300)
	p := settled(t, r)
	t.Cleanup(p.stopLater)
	var events []podmill.RuntimeEvent
	for _, pod := range r.pods {
		c := &pod.Containers[0]
		events = append(events, podmill.RuntimeEvent{Pod: pod.UID, ID: c.ID, State: c.State})
	}
	quiet, heap := events[:len(events)/2], heapInUse()
	for i := range 1_000_000 {
		e := events[i%len(events)]
		if i%len(events) >= len(quiet) { // half of the pods hear nothing new
			switch i / len(events) % 3 {
			case 1:
				e.ID, e.State = "", podmill.StateUnknown
			case 2:
				e.ID = fmt.Sprint("new-", i)
			}
		}
		p.event(e)
	}
	if grown := heapInUse() - heap; grown > 512*int64(len(events)) {
		t.Errorf("%d bytes more for %d pods", grown, len(events))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, e := range events {
		if heard, news := p.pods[e.Pod].stale, i >= len(quiet); heard != news {
			t.Errorf("pod %s is to be looked at: %v, want %v", e.Pod, heard, news)
		}
	}
}

// What is told while an inspection goes on is kept to be compared with its outcome, up to a bound; beyond that the pod is looked at again.
func TestWhatIsHeardDuringAnInspectionIsBounded(t *testing.T) {
	r := newStill(3)
	p := settled(t, r)
	t.Cleanup(p.stopLater)
	for _, pod := range r.pods {
		p.Hint(pod.UID)
		p.again(pod.UID)
		e := p.begin()
		for i := range 100_000 {
			p.event(podmill.RuntimeEvent{Pod: pod.UID, ID: fmt.Sprint("new-", i), State: podmill.StateRunning})
		}
		if len(e.heard) > maxHeard || !e.stale {
			t.Errorf("%d events are kept, stale: %v", len(e.heard), e.stale)
		}
		p.look(t.Context(), e)
		if !e.stale {
			t.Error("the inspection is taken to have seen what it did not")
		}
	}
}

func TestAnEventThatChangesNothingAllocatesNothing(t *testing.T) {
	r := newStill(3)
	p := settled(t, r)
	t.Cleanup(p.stopLater)
	for _, pod := range r.pods {
		known := podmill.RuntimeEvent{Pod: pod.UID, ID: pod.Containers[0].ID, State: pod.Containers[0].State}
		if n := testing.AllocsPerRun(1000, func() { p.event(known) }); n != 0 {
			t.Errorf("%v allocations for what is known", n)
		}
		p.Hint(pod.UID)
		if n := testing.AllocsPerRun(1000, func() { p.Hint(pod.UID) }); n != 0 {
			t.Errorf("%v allocations for what was heard already", n)
		}
	}
}

// BenchmarkEvent is an event of a pod that is waiting to be looked at and one that is no news, beside a bare look-up under the same lock.
func BenchmarkEvent(b *testing.B) {
	p, events := heard(b)
	each := func(do func(podmill.RuntimeEvent)) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				do(events[i%len(events)])
			}
		}
	}
	b.Run("baseline=lookup", each(func(e podmill.RuntimeEvent) {
		p.mu.Lock()
		_ = p.pods[e.Pod].seen
		p.mu.Unlock()
	}))
	b.Run("no-news", each(p.event))
	b.Run("hint", each(func(e podmill.RuntimeEvent) { p.Hint(e.Pod) }))
}

// heard is a PLEG that knows a thousand pods, and events of them that are no news.
func heard(tb testing.TB) (p *PLEG, events []podmill.RuntimeEvent) {
	r := newStill(3000)
	p = settled(tb, r)
	tb.Cleanup(p.stopLater)
	for _, pod := range r.pods {
		events = append(events, podmill.RuntimeEvent{Pod: pod.UID, ID: pod.Containers[0].ID, State: pod.Containers[0].State})
	}
	return p, events
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // far from the bound
}

//go:build !race

package pleg

import (
	"hash/maphash"
	"testing"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/ratio"
)

// A listing that changes nothing costs little more than to find the pod of each line and to take a hash of its ID.
func TestARelistBesideItsBaseline(t *testing.T) {
	r := newStill(1000)
	p := settled(t, r)
	var snap podmill.Snapshot
	ratio.AtMost(t, 3, func() {
		_ = r.ListPods(t.Context(), &p.listing)
		p.learnListing()
	}, func() {
		_ = r.ListPods(t.Context(), &snap)
		for i := range snap.Items {
			line := &snap.Items[i]
			if p.pods[line.Pod.UID] == nil || maphash.String(p.seed, line.ID) == 0 {
				t.Fatal("a pod is not known")
			}
		}
	})
}

// An event that is no news costs little more than to find its pod under the same lock.
func TestAnEventBesideItsBaseline(t *testing.T) {
	p, events := heard(t)
	i, found := 0, 0
	next := func() podmill.RuntimeEvent {
		i++
		return events[i%len(events)]
	}
	ratio.AtMost(t, 3.5, func() { p.event(next()) }, func() {
		e := next()
		p.mu.Lock()
		if p.pods[e.Pod].seen != nil {
			found++
		}
		p.mu.Unlock()
	})
	if found == 0 {
		t.Error("nothing found")
	}
}

//go:build !race

package syncloop

import (
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/ratio"
)

// A pod that waits already is found waiting at little more than the cost of a look-up under a lock.
func TestAnInboxBesideItsBaseline(t *testing.T) {
	all := uids(1000)
	inbox, known := NewInbox(), map[types.UID]struct{}{}
	for _, uid := range all {
		inbox.Put(uid)
		known[uid] = struct{}{}
	}
	i := 0
	next := func() types.UID {
		i++
		return all[i%len(all)]
	}
	var mu sync.Mutex
	ratio.AtMost(t, 3, func() { inbox.Put(next()) }, func() {
		uid := next()
		mu.Lock()
		if _, ok := known[uid]; !ok {
			t.Error("not found")
		}
		mu.Unlock()
	})
}

// One pod's change costs the same among ten thousand pods as among a hundred.
func TestOneOfManyBesideItsBaseline(t *testing.T) {
	among := func(pods int) func() {
		m := newSet("file", "http", "api")
		for i, uid := range uids(pods) {
			m[i%3].pods[uid] = testPod(string(uid), "v1")
		}
		versions := [2]*corev1.Pod{testPod("changes", "v1"), testPod("changes", "v2")}
		update := podmill.PodUpdate{Op: podmill.UpsertPods, Pods: []*corev1.Pod{nil}}
		i := 0
		return func() {
			i++
			update.Pods[0] = versions[i%2]
			if out := m.apply(2, update); len(out.changes) != 1 {
				t.Fatal("no change")
			}
		}
	}
	ratio.AtMost(t, 2, among(10_000), among(100))
}

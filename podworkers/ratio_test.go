//go:build !race

package podworkers

import (
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill/internal/ratio"
)

// To tell of a change to a pod that is being synced costs little more than to find it under a lock.
func TestCoalescingBesideItsBaseline(t *testing.T) {
	pods := manyPods(1000)
	w := running(t, pods)
	for name, tell := range map[string]func(*corev1.Pod){
		"update": w.Update,
		"sync":   func(pod *corev1.Pod) { w.Sync(pod.UID) },
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			known := map[types.UID]*corev1.Pod{}
			for _, pod := range pods {
				known[pod.UID] = pod
			}
			i := 0
			next := func() *corev1.Pod {
				i++
				return pods[i%len(pods)]
			}
			ratio.AtMost(t, 3, func() { tell(next()) }, func() {
				pod := next()
				mu.Lock()
				if known[pod.UID] != pod {
					t.Error("not found")
				}
				mu.Unlock()
			})
		})
	}
}

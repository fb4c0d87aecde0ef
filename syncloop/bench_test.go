package syncloop

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// BenchmarkUpsert is the cost of one pod's change in a set of many, beside the bare comparison of its two versions.
func BenchmarkUpsert(b *testing.B) {
	versions := [2]*corev1.Pod{testPod("changes", "v1"), testPod("changes", "v2")}
	b.Run("baseline=comparison", func(b *testing.B) {
		for b.Loop() {
			if same(versions[0], versions[1]) {
				b.Fatal("no change")
			}
		}
	})
	for _, pods := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("pods=%d", pods), func(b *testing.B) {
			m := newSet("file", "http", "api")
			for i, uid := range uids(pods) {
				m[i%3].pods[uid] = testPod(string(uid), "v1")
			}
			update := podmill.PodUpdate{Op: podmill.UpsertPods, Pods: []*corev1.Pod{nil}}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				update.Pods[0] = versions[i%2]
				if out := m.apply(2, update); len(out.changes) != 1 {
					b.Fatal("no change")
				}
			}
		})
	}
}

// BenchmarkReplace is the cost of a whole set that has not changed, beside a bare look-up of each pod.
func BenchmarkReplace(b *testing.B) {
	for _, pods := range []int{100, 10_000} {
		m := newSet("file")
		update := podmill.PodUpdate{Op: podmill.ReplacePods}
		for _, uid := range uids(pods) {
			update.Pods = append(update.Pods, testPod(string(uid), "v1"))
		}
		m.apply(0, update)
		b.Run(fmt.Sprintf("pods=%d/baseline=look-up", pods), func(b *testing.B) {
			still := make(map[types.UID]bool, pods)
			for b.Loop() {
				for _, pod := range update.Pods {
					still[pod.UID] = m[0].pods[pod.UID] == pod
				}
			}
		})
		b.Run(fmt.Sprintf("pods=%d/replace", pods), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if out := m.apply(0, update); len(out.changes) != 0 {
					b.Fatal("changes")
				}
			}
		})
	}
}

package sandbox

import (
	"os"
	"testing"

	"github.com/podmill/podmill"
)

// BenchmarkSync is what the sandbox costs each time that a pod is looked at, beside reading resolv.conf alone.
func BenchmarkSync(b *testing.B) {
	pod := newPod("web")
	pod.Labels = map[string]string{"app": "web"}
	seen := &podmill.RuntimePod{Sandboxes: []podmill.Sandbox{ready(1), dead(0)}}
	b.Run("baseline=ReadFile", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := os.ReadFile("testdata/resolv.conf"); err != nil {
				b.Fatal(err)
			}
		}
	})
	m := New(&fake{}, WithResolvConf("testdata/resolv.conf"))
	b.Run("Choose", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			m.Choose(pod, seen)
		}
	})
	b.Run("Spec", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := m.Spec(pod, 1); err != nil {
				b.Fatal(err)
			}
		}
	})
}

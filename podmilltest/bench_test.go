package podmilltest

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// The runtime must not be what a benchmark of an agent measures: the cost of a pod stays the same however many there are.
func BenchmarkRuntime(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		rt := NewRuntime()
		uids := make([]types.UID, n)
		for i := range uids {
			pod := Pod(fmt.Sprint("pod-", i), Container("c", "i"))
			uids[i] = pod.UID
			if _, err := rt.RunSandbox(context.Background(), &podmill.SandboxSpec{Pod: pod}); err != nil {
				b.Fatal(err)
			}
		}
		rt.Log().Reset()
		b.Run(fmt.Sprintf("ListPods/pods=%d", n), func(b *testing.B) {
			snap := new(podmill.Snapshot)
			b.ReportAllocs()
			for b.Loop() {
				if err := rt.ListPods(b.Context(), snap); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/pod")
		})
		b.Run(fmt.Sprintf("InspectPod/pods=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := rt.InspectPod(b.Context(), uids[i%n]); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("RunAndRemove/pods=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			pod := Pod("one-more")
			for b.Loop() {
				id, err := rt.RunSandbox(b.Context(), &podmill.SandboxSpec{Pod: pod})
				if err == nil {
					err = rt.RemoveSandbox(b.Context(), id)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package status_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"

	. "github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/status"
)

// BenchmarkSet is a status that changes nothing, which is most of them, beside the comparison that finds it out.
func BenchmarkSet(b *testing.B) {
	pod := Pod("p", Container("a", "x"))
	st := status.Generate(status.Input{Pod: pod, Seen: seen(running("a"))}, now)
	b.Run("baseline=DeepEqual", func(b *testing.B) {
		other := st.DeepCopy()
		b.ReportAllocs()
		for b.Loop() {
			if !equality.Semantic.DeepEqual(&st, other) {
				b.Fatal("a copy differs")
			}
		}
	})
	b.Run("unchanged", func(b *testing.B) {
		m := status.New(newSink(0))
		m.Set(pod, st)
		b.ReportAllocs()
		for b.Loop() {
			m.Set(pod, st)
		}
	})
}

// BenchmarkGenerate is the status of a pod of three containers, beside a copy of it.
func BenchmarkGenerate(b *testing.B) {
	pod := Pod("p", Container("a", "x"), Container("b", "x"), Container("c", "x"))
	in := status.Input{Pod: pod, Seen: seen(running("a"), running("b"), exited("c", 3))}
	last := status.Generate(in, now)
	in.Last = &last
	b.Run("baseline=DeepCopy", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			last.DeepCopy()
		}
	})
	b.Run("generate", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			status.Generate(in, now)
		}
	})
}

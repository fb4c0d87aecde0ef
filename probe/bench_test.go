package probe

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// BenchmarkScheduled is what one probe costs that does nothing, beside a goroutine that has a timer and calls the same func.
func BenchmarkScheduled(b *testing.B) {
	nothing := func(context.Context, string, []string) (*podmill.ExecResult, error) {
		return &podmill.ExecResult{}, nil
	}
	b.Run("probe", func(b *testing.B) {
		ran := make(chan struct{}, 1<<16)
		m := New(nothing, func(types.UID) {}, WithObserver(Observer{Probed: func(Run) { ran <- struct{}{} }}))
		for i := range 1000 {
			pod := podOf(types.UID(fmt.Sprint(i)), quick())
			m.Probe(pod, running(pod, "c", time.Now()), false)
			t := m.pods[pod.UID].instances["main"].tasks[liveness]
			t.timing.period = time.Microsecond // due again as soon as it is done
		}
		ctx, cancel := context.WithCancel(b.Context())
		var ended sync.WaitGroup
		b.ReportAllocs()
		b.ResetTimer()
		ended.Go(func() { _ = m.Run(ctx) })
		for b.Loop() {
			<-ran
		}
		b.StopTimer()
		cancel()
		go func() {
			for range ran { // let those go that still want to say something
				continue
			}
		}()
		ended.Wait()
		close(ran)
	})
	b.Run("baseline=goroutine+timer", func(b *testing.B) {
		ran := make(chan struct{}, 1<<16)
		ctx, cancel := context.WithCancel(b.Context())
		var ended sync.WaitGroup
		b.ReportAllocs()
		b.ResetTimer()
		for range 1000 {
			ended.Go(func() {
				timer := time.NewTimer(time.Microsecond)
				for {
					select {
					case <-ctx.Done():
						return
					case <-timer.C:
					}
					once, done := context.WithTimeout(ctx, time.Second)
					_, _ = nothing(once, "c", nil)
					done()
					select {
					case ran <- struct{}{}:
					case <-ctx.Done():
						return
					}
					timer.Reset(time.Microsecond)
				}
			})
		}
		for b.Loop() {
			<-ran
		}
		b.StopTimer()
		cancel()
		ended.Wait()
	})
}

// BenchmarkLook is what a look costs at a pod of ten containers of which each has all probes, beside one of a pod without.
func BenchmarkLook(b *testing.B) {
	pod, bare := podOf("a"), podOf("b")
	seen := &podmill.RuntimePod{}
	for i := range 10 {
		c := all()
		c.Name = fmt.Sprint("c", i)
		pod.Spec.Containers = append(pod.Spec.Containers, *c)
		bare.Spec.Containers = append(bare.Spec.Containers, corev1.Container{Name: c.Name})
		seen.Containers = append(seen.Containers, podmill.Container{ID: c.Name, Name: c.Name, State: podmill.StateRunning})
	}
	m := New(nil, func(types.UID) {})
	b.Run("probes", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			m.Probe(pod, seen, false)
		}
	})
	b.Run("baseline=none", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			m.Probe(bare, seen, false)
		}
	})
}

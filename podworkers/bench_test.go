package podworkers

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// many is a syncer with nothing to do, which says when each pod has been synced.
type many struct{ done *sync.WaitGroup }

func (m many) SyncPod(context.Context, *corev1.Pod) (bool, error) {
	m.done.Done()
	return false, nil
}
func (m many) SyncTerminatingPod(context.Context, *corev1.Pod, podmill.Termination) error { return nil }
func (m many) SyncTerminatingRuntimePod(context.Context, *podmill.RuntimePod) error       { return nil }
func (m many) SyncTerminatedPod(context.Context, *corev1.Pod) error                       { return nil }

func manyPods(n int) []*corev1.Pod {
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		pods[i] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprintf("pod-%d", i), UID: types.UID(fmt.Sprintf("4c9f6d1e-0000-4000-8000-%012d", i)),
			Annotations: map[string]string{podmill.AnnotationConfigSource: "file"},
		}}
	}
	return pods
}

// bare is what dispatch is compared with: it locks, looks up and spawns, and keeps no promise.
type bare struct {
	mu     sync.Mutex
	pods   map[types.UID]*corev1.Pod
	syncer Syncer
}

func (b *bare) Sync(uid types.UID) {
	b.mu.Lock()
	pod := b.pods[uid]
	b.mu.Unlock()
	go func() { _, _ = b.syncer.SyncPod(context.Background(), pod) }()
}

// started returns running workers in which every pod has been synced once, and what waits for further syncs.
func started(tb testing.TB, pods []*corev1.Pod) (*Workers, *sync.WaitGroup) {
	tb.Helper()
	var done sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	w := New(many{&done}, WithResync(24*60*60*1e9))
	go func() {
		defer close(ended)
		_ = w.Run(ctx)
	}()
	tb.Cleanup(func() { cancel(); <-ended })
	done.Add(len(pods))
	for _, pod := range pods {
		w.Update(pod)
	}
	done.Wait()
	for w.busy() {
		runtime.Gosched()
	}
	return w, &done
}

func (w *Workers) busy() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.crew == nil || w.crew.size > 0
}

func BenchmarkDispatch(b *testing.B) {
	const n = 10_000
	pods := manyPods(n)
	each := func(b *testing.B, syncPod func(types.UID), done *sync.WaitGroup) {
		var r0, r1 syscall.Rusage
		syscall.Getrusage(0, &r0)
		defer func() {
			syscall.Getrusage(0, &r1)
			cpu := r1.Utime.Nano() + r1.Stime.Nano() - r0.Utime.Nano() - r0.Stime.Nano()
			b.ReportMetric(float64(cpu)/float64(b.N)/n, "cpu-ns/pod")
		}()
		for b.Loop() {
			done.Add(n)
			for _, pod := range pods {
				syncPod(pod.UID)
			}
			done.Wait()
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/pod")
	}
	b.Run("bare", func(b *testing.B) {
		var done sync.WaitGroup
		loop := &bare{pods: map[types.UID]*corev1.Pod{}, syncer: many{&done}}
		for _, pod := range pods {
			loop.pods[pod.UID] = pod
		}
		each(b, loop.Sync, &done)
	})
	b.Run("workers", func(b *testing.B) {
		w, done := started(b, pods)
		each(b, w.Sync, done)
	})
}

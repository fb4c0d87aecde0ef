package podworkers

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// many is a syncer of pods that need nothing, which says so.
type many struct{ synced func() }

func (m many) SyncPod(context.Context, *corev1.Pod) (*podmill.Kill, error) {
	m.synced()
	return nil, nil
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

// bare is what dispatch is compared with: it locks, looks up and spawns, and promises nothing.
type bare struct {
	mu     sync.Mutex
	pods   map[types.UID]*corev1.Pod
	syncer Syncer
}

func newBare(syncer Syncer, pods []*corev1.Pod) *bare {
	b := &bare{pods: map[types.UID]*corev1.Pod{}, syncer: syncer}
	for _, pod := range pods {
		b.pods[pod.UID] = pod
	}
	return b
}

func (b *bare) Sync(uid types.UID) {
	b.mu.Lock()
	pod := b.pods[uid]
	b.mu.Unlock()
	go func() { _, _ = b.syncer.SyncPod(context.Background(), pod) }()
}

// run runs workers until the test ends.
func run(tb testing.TB, w *Workers) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = w.Run(ctx)
	}()
	tb.Cleanup(func() {
		cancel()
		<-done
	})
}

// rest waits until no sync is in flight.
func (w *Workers) rest() {
	for busy := true; busy; runtime.Gosched() {
		w.mu.Lock()
		busy = w.crew == nil || w.crew.size > 0
		w.mu.Unlock()
	}
}

// BenchmarkDispatch has 10,000 pods looked at, each once: with syncs that are over at once, until all are over; and with syncs that are
// all in flight together, until all have begun.
func BenchmarkDispatch(b *testing.B) {
	pods := manyPods(10_000)
	var begun, over sync.WaitGroup
	var gate chan struct{}
	brief := many{begun.Done}
	long := many{func() {
		defer over.Done()
		g := gate
		begun.Done()
		<-g
	}}
	measure := func(b *testing.B, look func(types.UID), rest func()) {
		for b.Loop() {
			begun.Add(len(pods))
			over.Add(len(pods))
			gate = make(chan struct{})
			for _, pod := range pods {
				look(pod.UID)
			}
			begun.Wait()
			b.StopTimer()
			close(gate)
			rest()
			over = sync.WaitGroup{}
			b.StartTimer()
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(pods)), "ns/pod")
	}
	for _, bm := range []struct {
		name   string
		syncer Syncer
		over   func()
	}{{"brief", brief, func() {}}, {"long", long, over.Wait}} {
		b.Run(bm.name+"/baseline=bare", func(b *testing.B) {
			measure(b, newBare(bm.syncer, pods).Sync, bm.over)
		})
		b.Run(bm.name+"/workers", func(b *testing.B) {
			w := New(many{func() {}}, WithResync(24*time.Hour))
			run(b, w)
			for _, pod := range pods {
				w.Update(pod)
			}
			w.rest()
			w.syncer = bm.syncer
			measure(b, w.Sync, w.rest)
		})
	}
}

// running returns workers with a sync in flight for each pod.
func running(tb testing.TB, pods []*corev1.Pod) *Workers {
	gate := make(chan struct{})
	var begun sync.WaitGroup
	w := New(many{func() {
		begun.Done()
		<-gate
	}})
	run(tb, w)
	tb.Cleanup(func() { close(gate) })
	begun.Add(len(pods))
	for _, pod := range pods {
		w.Update(pod)
	}
	begun.Wait()
	begun.Add(len(pods)) // for the syncs that follow
	return w
}

// BenchmarkCoalesce tells of changes to pods that are being synced.
func BenchmarkCoalesce(b *testing.B) {
	pods := manyPods(1000)
	measure := func(b *testing.B, tell func(*corev1.Pod)) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			tell(pods[i%len(pods)])
		}
	}
	b.Run("baseline=mutex+map", func(b *testing.B) {
		var mu sync.Mutex
		m := map[types.UID]*corev1.Pod{}
		for _, pod := range pods {
			m[pod.UID] = pod
		}
		var found *corev1.Pod
		measure(b, func(pod *corev1.Pod) {
			mu.Lock()
			found = m[pod.UID]
			mu.Unlock()
		})
		runtime.KeepAlive(found)
	})
	b.Run("update", func(b *testing.B) {
		measure(b, running(b, pods).Update)
	})
	b.Run("sync", func(b *testing.B) {
		w := running(b, pods)
		measure(b, func(pod *corev1.Pod) { w.Sync(pod.UID) })
	})
}

func TestCoalescingAllocatesNothing(t *testing.T) {
	pods := manyPods(10)
	w := running(t, pods)
	if n := testing.AllocsPerRun(1000, func() {
		for _, pod := range pods {
			w.Update(pod)
			w.Sync(pod.UID)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestAnIdlePodCostsLittle counts what 10,000 pods cost that have been synced, beside the Pod objects.
func TestAnIdlePodCostsLittle(t *testing.T) {
	const n, limit = 10_000, 512
	synctest.Test(t, func(t *testing.T) {
		pods := manyPods(n)
		w := New(many{func() {}})
		run(t, w)
		synctest.Wait()
		heap, goroutines := heapInUse(), runtime.NumGoroutine()
		for _, pod := range pods {
			w.Update(pod)
		}
		synctest.Wait()
		each := (heapInUse() - heap) / n
		t.Logf("%d bytes", each)
		if each > limit {
			t.Errorf("an idle pod costs %d bytes", each)
		}
		if more := runtime.NumGoroutine() - goroutines; more > 1 { // Go may have begun one of its own
			t.Errorf("%d idle pods cost %d goroutines", n, more)
		}
		runtime.KeepAlive(pods)
	})
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

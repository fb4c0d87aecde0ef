package agent_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/agent"
	. "github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/status"
)

// One pod whose calls hang, whichever of them, delays neither the start nor the end of another.
func TestAPodThatHangsInTheRuntimeDelaysNoOther(t *testing.T) {
	for _, op := range []Op{
		OpRunSandbox, OpCreateContainer, OpStartContainer, OpInspectPod, OpInspectSandbox, OpStopContainer, OpStopSandbox, OpRemoveSandbox,
	} {
		t.Run(string(op), func(t *testing.T) {
			inWorld(t, func(w *world) {
				bad := Pod("bad", static, Container("server", "busybox:1"), Grace(time.Second))
				w.use = Faulty(w.rt, Fault{On: op, Pod: bad.UID, Effect: Hang(nil)})
				w.start()
				w.file.Replace(bad)
				w.pass(time.Second)
				w.file.Delete(bad) // it hangs in its start, or else in its end
				w.pass(time.Second)
				var good []*corev1.Pod
				for i := range 20 {
					good = append(good, Pod(fmt.Sprint("good-", i), static, Container("server", "busybox:1"), Grace(time.Second)))
					w.file.Upsert(good[i])
				}
				w.pass(time.Second)
				for _, pod := range good {
					w.wantPhase(pod, corev1.PodRunning)
					w.file.Delete(pod)
				}
				w.pass(5 * time.Second)
				for _, pod := range good {
					w.wantGone(pod)
				}
			})
		})
	}
}

// What a pod costs the runtime does not depend on how many there are.
func TestTheCallsOfAPodDoNotGrowWithTheirNumber(t *testing.T) {
	calls := func(n int) (each map[Op]int) {
		inWorld(t, func(w *world) {
			w.use = Faulty(w.rt, Fault{On: OpRuntimeStatus, Effect: Slow(10 * time.Millisecond)})
			w.start()
			w.file.Replace()
			for i := range n {
				w.file.Upsert(Pod(fmt.Sprint("pod-", i), static, Container("server", "busybox:1")))
			}
			w.pass(30 * time.Second)
			each = w.rt.Log().Counts()
		})
		return each
	}
	few, many := calls(10), calls(300)
	for op, n := range many {
		most := 30 * few[op]
		switch op {
		case OpListPods, OpStreamEvents:
			continue
		case OpInspectPod: // the events of a start come before its last look, or after, and with few pods in between
			most = 2*300 + 30
		}
		if n > most {
			t.Errorf("%d calls of %s for 300 pods, %d for 10", n, op, few[op])
		}
	}
	if many[OpRuntimeStatus] > 1 { // who it is, and whether it has a network
		t.Errorf("%d calls of %s for 300 pods", many[OpRuntimeStatus], OpRuntimeStatus)
	}
	if many[OpListPods] > 2 { // at the start, and when the stream is up
		t.Errorf("%d listings for 300 pods, %d for 10", many[OpListPods], few[OpListPods])
	}
	if few[OpStartContainer] != 10 || many[OpStartContainer] != 300 {
		t.Errorf("%d and %d containers were started", few[OpStartContainer], many[OpStartContainer])
	}
}

// BenchmarkPods is an agent that is given so many pods at once, over the in-memory runtime, until each is told to run, beside the bare calls
// that start them. A pod costs the same whatever their number. B/pod is what is in memory afterwards, the runtime's own part in it: that is the
// baseline's.
func BenchmarkPods(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("pods=%d/baseline=calls", n), func(b *testing.B) {
			measurePods(b, n, func(rt *Runtime, pods []*corev1.Pod) (end func()) {
				for _, pod := range pods {
					if err := startBare(b.Context(), rt, pod); err != nil {
						b.Fatal(err)
					}
				}
				return func() {}
			})
		})
		b.Run(fmt.Sprintf("pods=%d/agent", n), func(b *testing.B) {
			measurePods(b, n, func(rt *Runtime, pods []*corev1.Pod) (end func()) { return startAll(b, rt, pods) })
		})
	}
}

func measurePods(b *testing.B, n int, start func(*Runtime, []*corev1.Pod) (end func())) {
	var heap, goroutines int64
	for b.Loop() {
		b.StopTimer()
		rt := NewRuntime(WithImages(ScriptImage("busybox:1", "sleep 1000000")))
		pods := make([]*corev1.Pod, n)
		for i := range pods {
			pods[i] = Pod(fmt.Sprint("pod-", i), static, Container("server", "busybox:1"))
		}
		heap, goroutines = heap-heapInUse(), goroutines-int64(runtime.NumGoroutine())
		b.StartTimer()
		end := start(rt, pods)
		b.StopTimer()
		heap, goroutines = heap+heapInUse(), goroutines+int64(runtime.NumGoroutine())
		end()
		rt.Close()
		b.StartTimer()
	}
	all := float64(b.N * n)
	b.ReportMetric(float64(b.Elapsed().Microseconds())/all, "us/pod")
	b.ReportMetric(float64(heap)/all, "B/pod")
	b.ReportMetric(float64(goroutines)/all, "goroutines/pod")
}

func startBare(ctx context.Context, rt *Runtime, pod *corev1.Pod) error {
	sandbox := &podmill.SandboxSpec{Pod: pod}
	id, err := rt.RunSandbox(ctx, sandbox)
	if err != nil {
		return err
	}
	id, err = rt.CreateContainer(ctx, &podmill.ContainerSpec{Sandbox: sandbox, SandboxID: id, Container: &pod.Spec.Containers[0], Image: "busybox:1"})
	if err != nil {
		return err
	}
	return rt.StartContainer(ctx, id)
}

// startAll runs an agent until it has told of every pod that it runs.
func startAll(b *testing.B, rt *Runtime, pods []*corev1.Pod) (end func()) {
	running := make(chan struct{}, len(pods))
	sink := status.FuncSink(func(_ context.Context, _ *corev1.Pod, st *corev1.PodStatus) error {
		if st.Phase == corev1.PodRunning {
			running <- struct{}{}
		}
		return nil
	})
	source := NewPodSource("file")
	a, err := agent.New(rt, b.TempDir(), []podmill.PodSource{source}, agent.WithStatusSink(sink))
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	source.Replace(pods...)
	for range pods {
		<-running
	}
	return func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	}
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // far from the bound
}

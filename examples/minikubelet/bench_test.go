package main

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/agent"
	"github.com/podmill/podmill/cri"
	"github.com/podmill/podmill/internal/testenv"
	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/status"
)

// BenchmarkStart starts pods of one container on real containerd, from the source's delivery to the status that says Running. Beside the time
// it reports how much of it was spent in the runtime's own calls (the baseline, in the same run), what the agent added, and how many calls
// were made.
func BenchmarkStart(b *testing.B) {
	var calls meter
	runtime, err := cri.Dial(b.Context(), testenv.Containerd(b), cri.WithObserver(cri.Observer{Called: calls.called}))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = runtime.Close() }()
	running := make(chan string, 1)
	sink := status.FuncSink(func(_ context.Context, pod *corev1.Pod, s *corev1.PodStatus) error {
		if s.Phase == corev1.PodRunning {
			running <- pod.Name
		}
		return nil
	})
	source := podmilltest.NewPodSource("file")
	a, err := agent.New(runtime, b.TempDir(), []podmill.PodSource{source}, agent.WithStatusSink(sink), agent.WithStopPodsOnExit())
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	source.Replace()

	var total, inside time.Duration
	for i := 0; b.Loop(); i++ {
		name := fmt.Sprintf("bench-%d-%d", b.N, i)
		pod := podmilltest.Pod(name, podmilltest.Container("main", "podmill.test/busybox:1", podmilltest.Command("sleep", "100000")), podmilltest.Grace(0))
		calls.reset()
		begin := time.Now()
		source.Upsert(pod)
		for <-running != name {
		}
		total += time.Since(begin)
		inside += calls.of("RunPodSandbox") + calls.of("CreateContainer") + calls.of("StartContainer") + calls.of("ImageStatus")
		source.Delete(pod)
	}
	n := float64(b.N)
	b.ReportMetric(inside.Seconds()*1e3/n, "runtime-ms/op")
	b.ReportMetric((total-inside).Seconds()*1e3/n, "own-ms/op")
	b.ReportMetric(100*(total-inside).Seconds()/inside.Seconds(), "own-%")
	cancel()
	if err := <-ended; err != nil {
		b.Error(err)
	}
}

// meter adds up the time that the runtime takes, by call.
type meter struct {
	mu   sync.Mutex
	took map[string]time.Duration
}

func (m *meter) called(method string, took time.Duration, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.took != nil {
		m.took[method] += took
	}
}

func (m *meter) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.took = map[string]time.Duration{}
}

func (m *meter) of(method string) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.took[method]
}

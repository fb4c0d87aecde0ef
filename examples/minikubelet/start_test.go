package main

import (
	"context"
	"fmt"
	"strings"
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

// starter is an agent over real containerd, whose calls are metered.
type starter struct {
	meter
	source  *podmilltest.PodSource
	running chan string // the names of pods whose status says that they run
}

func newStarter(tb testing.TB) *starter {
	tb.Helper()
	s := &starter{source: podmilltest.NewPodSource("file"), running: make(chan string, 100)}
	runtime, err := cri.Dial(tb.Context(), testenv.Containerd(tb), cri.WithObserver(cri.Observer{Called: s.called}))
	if err != nil {
		tb.Fatal(err)
	}
	sink := status.FuncSink(func(_ context.Context, pod *corev1.Pod, st *corev1.PodStatus) error {
		if st.Phase == corev1.PodRunning {
			s.running <- pod.Name
		}
		return nil
	})
	a, err := agent.New(runtime, tb.TempDir(), []podmill.PodSource{s.source}, agent.WithStatusSink(sink), agent.WithStopPodsOnExit())
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			tb.Error(err)
		}
		_ = runtime.Close()
	})
	s.source.Replace()
	return s
}

// start delivers a pod and waits until its status says that it runs.
func (s *starter) start(pod *corev1.Pod) {
	s.source.Upsert(pod)
	for <-s.running != pod.Name {
	}
}

func sleeping(name string) podmilltest.PodOption {
	return podmilltest.Container(name, "podmill.test/busybox:1", podmilltest.Command("sleep", "100000"))
}

// A start makes the calls that have to be, one check of the image and one inspection for each container, and one look at the sandbox for its
// address. What it has caused itself comes back as events and causes nothing more.
func TestCallsOfAStart(t *testing.T) {
	s := newStarter(t)
	s.start(podmilltest.Pod("first", sleeping("main"), podmilltest.Grace(0))) // with it goes what is done once
	s.settle(t)
	s.reset()
	s.start(podmilltest.Pod("calls", sleeping("a"), sleeping("b"), sleeping("c"), podmilltest.Grace(0)))
	s.settle(t)
	for method, most := range map[string]int{
		"RunPodSandbox": 1, "CreateContainer": 3, "StartContainer": 3, "ImageStatus": 3, "ContainerStatus": 3, "PodSandboxStatus": 2, "PullImage": 0, "Status": 0,
	} {
		if n := s.count(method); n > most {
			t.Errorf("%d calls of %s, want at most %d", n, method, most)
		}
	}
	for method, exactly := range map[string]int{"RunPodSandbox": 1, "CreateContainer": 3, "StartContainer": 3} {
		if n := s.count(method); n != exactly {
			t.Errorf("%d calls of %s, want %d", n, method, exactly)
		}
	}
}

// settle waits until no call was made for longer than a hint waits for somebody to ask.
func (s *starter) settle(t *testing.T) {
	t.Helper()
	for patience := time.After(30 * time.Second); s.idle() < 3*time.Second; {
		select {
		case <-patience:
			t.Fatal("the agent does not come to rest")
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// BenchmarkStart starts pods of one container on real containerd, from the source's delivery to the status that says Running. Beside the time
// it reports how much of it was spent in the runtime's own calls (the baseline, in the same run), and what the agent added.
func BenchmarkStart(b *testing.B) {
	s := newStarter(b)
	var total, inside time.Duration
	for i := 0; b.Loop(); i++ {
		pod := podmilltest.Pod(fmt.Sprintf("bench-%d-%d", b.N, i), sleeping("main"), podmilltest.Grace(0))
		s.reset()
		begin := time.Now()
		s.start(pod)
		total += time.Since(begin)
		inside += s.of("RunPodSandbox") + s.of("CreateContainer") + s.of("StartContainer") + s.of("ImageStatus")
		s.source.Delete(pod)
	}
	n := float64(b.N)
	b.ReportMetric(inside.Seconds()*1e3/n, "runtime-ms/op")
	b.ReportMetric((total-inside).Seconds()*1e3/n, "own-ms/op")
	b.ReportMetric(100*(total-inside).Seconds()/inside.Seconds(), "own-%")
}

// meter counts the runtime's calls and adds up the time that they take.
type meter struct {
	mu   sync.Mutex
	took map[string]time.Duration
	made map[string]int
	last time.Time
}

func (m *meter) called(method string, took time.Duration, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if listing := strings.HasPrefix(method, "List") || strings.HasPrefix(method, "Stream"); m.took != nil && !listing {
		m.took[method] += took
		m.made[method]++
		m.last = time.Now()
	}
}

func (m *meter) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.took, m.made = map[string]time.Duration{}, map[string]int{}
}

func (m *meter) of(method string) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.took[method]
}

func (m *meter) count(method string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.made[method]
}

// idle is how long ago the last call was.
func (m *meter) idle() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Since(m.last)
}

package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

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
	agent   *agent.Agent
	running chan string // the names of pods whose status says that they run
}

func newStarter(tb testing.TB, wrap func(podmill.Runtime) podmill.Runtime, opts ...agent.Option) *starter {
	tb.Helper()
	return newStarterIn(tb, tb.TempDir(), wrap, opts...)
}

// newStarterIn is newStarter with a root directory of the caller's.
func newStarterIn(tb testing.TB, root string, wrap func(podmill.Runtime) podmill.Runtime, opts ...agent.Option) *starter {
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
	a, err := agent.New(wrap(runtime), root, []podmill.PodSource{s.source}, append(opts, agent.WithStatusSink(sink), agent.WithStopPodsOnExit())...)
	if err != nil {
		tb.Fatal(err)
	}
	s.agent = a
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

// counting counts the calls about one pod, the only one that the agent starts: a runtime has other users, whose pods it looks at too.
type counting struct {
	podmill.Runtime
	mu    sync.Mutex
	pod   types.UID
	calls map[string]int
	last  time.Time
}

func (c *counting) Unwrap() podmill.Runtime { return c.Runtime }

// about has it count the calls about a pod, from now on.
func (c *counting) about(pod types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pod, c.calls, c.last = pod, map[string]int{}, time.Now()
}

// count notes a call about a pod or, where that is empty, about whichever is started.
func (c *counting) count(method string, pod types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if pod == c.pod || pod == "" {
		c.calls[method]++
		c.last = time.Now()
	}
}

func (c *counting) InspectPod(ctx context.Context, pod types.UID) (*podmill.RuntimePod, error) {
	c.count("InspectPod", pod)
	return c.Runtime.InspectPod(ctx, pod)
}

func (c *counting) RunSandbox(ctx context.Context, spec *podmill.SandboxSpec) (string, error) {
	c.count("RunSandbox", spec.Pod.UID)
	return c.Runtime.RunSandbox(ctx, spec)
}

func (c *counting) CreateContainer(ctx context.Context, spec *podmill.ContainerSpec) (string, error) {
	c.count("CreateContainer", spec.Sandbox.Pod.UID)
	return c.Runtime.CreateContainer(ctx, spec)
}

func (c *counting) StartContainer(ctx context.Context, id string) error {
	c.count("StartContainer", "")
	return c.Runtime.StartContainer(ctx, id)
}

func (c *counting) InspectImage(ctx context.Context, image string) (*podmill.Image, error) {
	c.count("InspectImage", "")
	return c.Runtime.InspectImage(ctx, image)
}

// settled returns the calls since about, once none has come for longer than a hint waits for somebody to ask.
func (c *counting) settled() map[string]int {
	for ; ; time.Sleep(100 * time.Millisecond) {
		c.mu.Lock()
		calls, quiet := maps.Clone(c.calls), time.Since(c.last) > 12*time.Second
		c.mu.Unlock()
		if quiet {
			return calls
		}
	}
}

// A start makes the calls that have to be, one check of the image for each container, and one inspection of the pod. What it has caused itself comes
// back as events and causes nothing more. A start that takes long is looked at in between, so on a machine that has others to serve one of three has to be as it should.
func TestCallsOfAStart(t *testing.T) {
	c := &counting{}
	s := newStarter(t, func(runtime podmill.Runtime) podmill.Runtime {
		c.Runtime = runtime
		return c
	})
	want := map[string]int{"RunSandbox": 1, "InspectImage": 3, "CreateContainer": 3, "StartContainer": 3, "InspectPod": 1}
	var diff string
	for i := range 3 {
		pod := podmilltest.Pod(fmt.Sprintf("calls-%d-%d", os.Getpid(), i), sleeping("a"), sleeping("b"), sleeping("c"), podmilltest.Grace(0))
		c.about(pod.UID)
		s.start(pod)
		if diff = cmp.Diff(want, c.settled()); diff == "" {
			return
		}
	}
	t.Errorf("calls (-want +got):\n%s", diff)
}

// BenchmarkStart starts pods of one container on real containerd, from the source's delivery to the status that says Running. Beside the time
// it reports how much of it was spent in the runtime's own calls (the baseline, in the same run), and what the agent added. The image is looked at beside the sandbox.
func BenchmarkStart(b *testing.B) {
	s := newStarter(b, func(runtime podmill.Runtime) podmill.Runtime { return runtime })
	var total, inside time.Duration
	for i := 0; b.Loop(); i++ {
		pod := podmilltest.Pod(fmt.Sprintf("bench-%d-%d", b.N, i), sleeping("main"), podmilltest.Grace(0))
		s.reset()
		begin := time.Now()
		s.start(pod)
		total += time.Since(begin)
		inside += s.of("RunPodSandbox") + s.of("CreateContainer") + s.of("StartContainer")
		s.source.Delete(pod)
	}
	n := float64(b.N)
	b.ReportMetric(inside.Seconds()*1e3/n, "runtime-ms/op")
	b.ReportMetric((total-inside).Seconds()*1e3/n, "own-ms/op")
	b.ReportMetric(100*(total-inside).Seconds()/inside.Seconds(), "own-%")
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

package probe

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a manager in virtual time, whose exec probes are answered by the test: by default they succeed at once.
type rig struct {
	*testing.T
	*Manager
	t0     time.Time
	events *podmilltest.EventRecorder

	mu       sync.Mutex
	answer   func(ctx context.Context, id, probe string) (*podmill.ExecResult, error)
	asked    []string // "<seconds> <probe> <id>"
	notified int
	runs     []Run
}

// virtually runs a test with a running manager.
func virtually(t *testing.T, test func(*rig), opts ...Option) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, t0: time.Now(), events: podmilltest.NewEventRecorder()}
		r.Manager = New(r.exec, func(types.UID) { r.with(func() { r.notified++ }) }, append([]Option{
			WithEvents(r.events), WithObserver(Observer{Probed: func(run Run) { r.with(func() { r.runs = append(r.runs, run) }) }}),
		}, opts...)...)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Manager.Run(ctx) }()
		test(r)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func (r *rig) with(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

func (r *rig) exec(ctx context.Context, id string, command []string) (*podmill.ExecResult, error) {
	r.mu.Lock()
	r.asked = append(r.asked, fmt.Sprintf("%v %s %s", time.Since(r.t0).Seconds(), command[0], id))
	answer := r.answer
	r.mu.Unlock()
	if answer != nil {
		return answer(ctx, id, command[0])
	}
	return &podmill.ExecResult{}, nil
}

// says makes the probes answer with an exit code each; those not named succeed.
func (r *rig) says(codes map[string]int32) {
	r.with(func() {
		r.answer = func(_ context.Context, _, probe string) (*podmill.ExecResult, error) {
			return &podmill.ExecResult{ExitCode: codes[probe], Stdout: []byte(probe + " says so")}, nil
		}
	})
}

// saw returns what was asked since the last call.
func (r *rig) saw() []string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := r.asked
	r.asked = nil
	return asked
}

// results returns all results so far.
func (r *rig) results() []Run {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.runs)
}

func (r *rig) pass(d time.Duration) { time.Sleep(d); synctest.Wait() }

// is compares the health of the container with an ID.
func (r *rig) is(pod *corev1.Pod, seen *podmill.RuntimePod, want podmill.Health) {
	r.Helper()
	synctest.Wait()
	if got := r.Probe(pod, seen, false)[seen.Containers[0].ID]; got != want {
		r.Errorf("at %v: %+v, want %+v", time.Since(r.t0), got, want)
	}
}

func execProbe(name string, more ...func(*corev1.Probe)) *corev1.Probe {
	p := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{name}}}}
	for _, f := range more {
		f(p)
	}
	return p
}

func podOf(uid types.UID, containers ...*corev1.Container) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pod-" + string(uid), UID: uid}}
	for _, c := range containers {
		p.Spec.Containers = append(p.Spec.Containers, *c)
	}
	return p
}

// running is a pod whose container main runs, under an ID, from a time on.
func running(pod *corev1.Pod, id string, since time.Time) *podmill.RuntimePod {
	return &podmill.RuntimePod{
		PodRef:     podmill.RefOf(pod),
		Sandboxes:  []podmill.Sandbox{{ID: "s", Ready: true, IPs: []string{"127.0.0.1"}}},
		Containers: []podmill.Container{{ID: id, SandboxID: "s", Name: "main", State: podmill.StateRunning, StartedAt: since.Round(0)}},
	}
}

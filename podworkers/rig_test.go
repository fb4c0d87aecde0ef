package podworkers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/podworkers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// story is a Syncer that writes down what it is told to do and when, and does it as the test says. What the test does not
// say succeeds at once.
type story struct {
	SyncPodFunc func(ctx context.Context, pod *corev1.Pod) (*podmill.Kill, error)
	StopFunc    func(ctx context.Context, pod *corev1.Pod, t podmill.Termination) error
	OrphanFunc  func(ctx context.Context, pod *podmill.RuntimePod) error
	CleanFunc   func(ctx context.Context, pod *corev1.Pod) error

	began time.Time
	mu    sync.Mutex
	lines []string
}

// note adds a line to the story.
func (s *story) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf("%v ", time.Since(s.began))+fmt.Sprintf(format, args...))
}

// told returns the story so far and begins a new one.
func (s *story) told() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.lines = nil }()
	return strings.Join(s.lines, "\n")
}

func (s *story) SyncPod(ctx context.Context, pod *corev1.Pod) (*podmill.Kill, error) {
	s.note("sync %s", version(pod))
	if s.SyncPodFunc == nil {
		return nil, nil
	}
	return s.SyncPodFunc(ctx, pod)
}

func (s *story) SyncTerminatingPod(ctx context.Context, pod *corev1.Pod, t podmill.Termination) error {
	reason := ""
	if t.Reason != "" {
		reason = " " + t.Reason
	}
	s.note("stop %s by %v%s", version(pod), t.Deadline.Sub(s.began), reason)
	if s.StopFunc == nil {
		return nil
	}
	return s.StopFunc(ctx, pod, t)
}

func (s *story) SyncTerminatingRuntimePod(ctx context.Context, pod *podmill.RuntimePod) error {
	s.note("stop orphan %s", pod.PodRef)
	if s.OrphanFunc == nil {
		return nil
	}
	return s.OrphanFunc(ctx, pod)
}

func (s *story) SyncTerminatedPod(ctx context.Context, pod *corev1.Pod) error {
	s.note("clean %s", version(pod))
	if s.CleanFunc == nil {
		return nil
	}
	return s.CleanFunc(ctx, pod)
}

// version names a pod by its UID and, where it has one, its resource version; a star says that it is deleted.
func version(pod *corev1.Pod) string {
	name := string(pod.UID)
	if pod.ResourceVersion != "" {
		name += "/" + pod.ResourceVersion
	}
	if pod.DeletionTimestamp != nil {
		name += "*"
	}
	return name
}

// withWorkers runs a test on running workers in virtual time. Retries and resyncs are spread at random, so by default there are no resyncs.
func withWorkers(t *testing.T, test func(*testing.T, calm, *story), opts ...podworkers.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &story{began: time.Now()}
		w := podworkers.New(s, append([]podworkers.Option{podworkers.WithResync(0)}, opts...)...)
		stop := start(t, w)
		defer stop()
		test(t, calm{w}, s)
	})
}

// calm is workers that settle after everything that they are told, so that a story does not depend on the scheduler.
type calm struct{ *podworkers.Workers }

func (w calm) Update(pod *corev1.Pod) {
	w.Workers.Update(pod)
	synctest.Wait()
}

func (w calm) Kill(uid types.UID, k podmill.Kill) <-chan struct{} {
	defer synctest.Wait()
	return w.Workers.Kill(uid, k)
}

func (w calm) Remove(uid types.UID) {
	w.Workers.Remove(uid)
	synctest.Wait()
}

func (w calm) Orphan(seen *podmill.RuntimePod) {
	w.Workers.Orphan(seen)
	synctest.Wait()
}

func (w calm) Leftover(uid types.UID) {
	w.Workers.Leftover(uid)
	synctest.Wait()
}

// start runs workers until the function that it returns is called.
func start(t *testing.T, w *podworkers.Workers) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	synctest.Wait()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
}

// expect compares the story since the last look with what it should be.
func (s *story) expect(t *testing.T, want string) {
	t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(trim(want), s.told()); diff != "" {
		t.Errorf("the story is another one (-want +got):\n%s", diff)
	}
}

func trim(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "\n")
}

// pass lets time pass and everything settle.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// expectStates compares the snapshot with lines of the form "uid state".
func expectStates(t *testing.T, w interface{ Pods() []podworkers.PodState }, want ...string) {
	t.Helper()
	synctest.Wait()
	got := []string{}
	for _, p := range w.Pods() {
		got = append(got, fmt.Sprintf("%s %s", p.UID, p.State))
	}
	if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
}

func closed(c <-chan struct{}) bool {
	synctest.Wait()
	return isClosed(c)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// pod returns a pod of that UID, with a grace period of 30 seconds.
func pod(uid string, opts ...podmilltest.PodOption) *corev1.Pod {
	return podmilltest.Pod(uid, append([]podmilltest.PodOption{podmilltest.UID(types.UID(uid)), podmilltest.Grace(30 * time.Second)}, opts...)...)
}

func v(version string) podmilltest.PodOption {
	return func(pod *corev1.Pod) { pod.ResourceVersion = version }
}

func phase(p corev1.PodPhase) podmilltest.PodOption {
	return func(pod *corev1.Pod) { pod.Status.Phase = p }
}

// static makes a pod a static one of a name.
func static(name string) podmilltest.PodOption {
	return func(pod *corev1.Pod) {
		pod.Name = name
		podmilltest.Annotation(podmill.AnnotationConfigSource, "file")(pod)
	}
}

func after(seconds int64) podmill.Kill { return podmill.Kill{GracePeriodSeconds: &seconds} }

// sleep does something for so long, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// untilDeadline is a StopFunc of a pod that does not heed SIGTERM.
func untilDeadline(ctx context.Context, _ *corev1.Pod, t podmill.Termination) error {
	return sleep(ctx, time.Until(t.Deadline))
}

var errSync = errors.New("it does not work")

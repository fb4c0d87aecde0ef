package syncloop_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/syncloop"
)

// fakeWorkers write down what they are told, and know the pods that they were told of.
type fakeWorkers struct {
	mu    sync.Mutex
	told  []string
	known map[types.UID]bool
	stall chan struct{} // Sync waits for it, where it is set
	quick bool          // an orphan has finished at once

	leftover []types.UID // what they were told that the runtime holds
}

func newWorkers() *fakeWorkers { return &fakeWorkers{known: map[types.UID]bool{}} }

func (w *fakeWorkers) tell(what string, uid types.UID, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, what)
	if known {
		w.known[uid] = true
	}
}

func (w *fakeWorkers) Update(pod *corev1.Pod) {
	w.tell("update "+string(pod.UID)+" "+image(pod), pod.UID, true)
}

func (w *fakeWorkers) Remove(uid types.UID) { w.tell("remove "+string(uid), uid, false) }

func (w *fakeWorkers) Sync(uid types.UID) {
	w.tell("sync "+string(uid), uid, false)
	if w.stall != nil {
		<-w.stall
	}
}

func (w *fakeWorkers) Orphan(pod *podmill.RuntimePod) {
	w.tell("orphan "+string(pod.UID), pod.UID, !w.quick)
}

func (w *fakeWorkers) Leftover(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leftover = append(w.leftover, uid)
}

func (w *fakeWorkers) Known(uid types.UID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.known[uid]
}

// finish lets the workers forget a pod.
func (w *fakeWorkers) finish(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.known, uid)
}

func (w *fakeWorkers) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	told := w.told
	w.told = nil
	return told
}

// wantTold checks what the workers were told since the last call.
func (w *fakeWorkers) wantTold(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	if d := cmp.Diff(want, w.take()); d != "" {
		t.Errorf("workers were told (-want +got):\n%s", d)
	}
}

// fakeSource delivers what a test sends, before the test goes on.
type fakeSource struct {
	name    string
	updates chan podmill.PodUpdate
	fail    chan error
	runs    int
}

func newSource(name string) *fakeSource {
	return &fakeSource{name: name, updates: make(chan podmill.PodUpdate), fail: make(chan error)}
}

func (s *fakeSource) Name() string { return s.name }

func (s *fakeSource) Run(ctx context.Context, deliver func(podmill.PodUpdate)) error {
	s.runs++
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-s.fail:
			return err
		case u := <-s.updates:
			deliver(u)
		}
	}
}

func (s *fakeSource) replace(pods ...*corev1.Pod) {
	s.updates <- podmill.PodUpdate{Op: podmill.ReplacePods, Pods: pods}
	synctest.Wait()
}

func (s *fakeSource) upsert(pods ...*corev1.Pod) {
	s.updates <- podmill.PodUpdate{Op: podmill.UpsertPods, Pods: pods}
	synctest.Wait()
}

func (s *fakeSource) remove(pods ...*corev1.Pod) {
	s.updates <- podmill.PodUpdate{Op: podmill.DeletePods, Pods: pods}
	synctest.Wait()
}

// fakeCleaner writes down whom it was not to keep, of those that it has something of.
type fakeCleaner struct {
	mu      sync.Mutex
	has     []types.UID
	cleaned []types.UID
	rounds  int
	err     error
	hang    bool
}

func (c *fakeCleaner) Cleanup(ctx context.Context, keep func(types.UID) bool) error {
	c.mu.Lock()
	c.rounds++
	hang := c.hang
	c.mu.Unlock()
	if hang {
		<-ctx.Done()
		return ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.has = slices.DeleteFunc(c.has, func(uid types.UID) bool {
		if keep(uid) {
			return false
		}
		c.cleaned = append(c.cleaned, uid)
		return true
	})
	return c.err
}

func (c *fakeCleaner) wantCleaned(t *testing.T, want ...types.UID) {
	t.Helper()
	synctest.Wait()
	cleaned, _ := c.take()
	if d := cmp.Diff(want, cleaned); d != "" {
		t.Errorf("cleaned (-want +got):\n%s", d)
	}
}

// find gives the cleaner something of pods to clean up.
func (c *fakeCleaner) find(uids ...types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.has = uids
}

// take returns what was cleaned since the last call, and what is left.
func (c *fakeCleaner) take() (cleaned, left []types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cleaned, c.cleaned = c.cleaned, nil
	return cleaned, slices.Clone(c.has)
}

// fakeRuntime is what the runtime holds, once it was listed.
type fakeRuntime struct {
	mu   sync.Mutex
	pods []*podmill.RuntimePod
	ok   bool
}

func (r *fakeRuntime) Pods() ([]*podmill.RuntimePod, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pods, r.ok
}

// holds makes the runtime hold pods, given as UID and source.
func (r *fakeRuntime) holds(pods ...[2]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pods, r.ok = nil, true
	for _, p := range pods {
		pod := &podmill.RuntimePod{PodRef: podmill.PodRef{UID: types.UID(p[0])}, Sandboxes: []podmill.Sandbox{{ID: "s"}}}
		if p[1] != "" {
			pod.Sandboxes[0].Annotations = map[string]string{podmill.AnnotationConfigSource: p[1]}
		}
		r.pods = append(r.pods, pod)
	}
}

// set makes the runtime hold pods.
func (r *fakeRuntime) set(pods ...*podmill.RuntimePod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pods, r.ok = pods, true
}

// staticPod is a pod of a file, whose image is its name.
func staticPod(uid, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Name: name, Annotations: map[string]string{podmill.AnnotationConfigSource: "file"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Image: name}}},
	}
}

// start runs a loop until the test ends, in a bubble.
func start(t *testing.T, w syncloop.Workers, inbox *syncloop.Inbox, sources []*fakeSource, opts ...syncloop.Option) *syncloop.Loop {
	t.Helper()
	var all []podmill.PodSource
	for _, s := range sources {
		all = append(all, s)
	}
	l := syncloop.New(w, inbox, all, opts...)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- l.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	synctest.Wait()
	return l
}

func newPod(uid, image string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Namespace: "default", Name: "pod-" + uid},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
	}
}

func image(pod *corev1.Pod) string { return pod.Spec.Containers[0].Image }

func tick() {
	time.Sleep(2 * time.Second)
	synctest.Wait() // the loop wakes at the same instant, and may come second
}

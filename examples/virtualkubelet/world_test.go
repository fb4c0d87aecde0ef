package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/agent"
	"github.com/podmill/podmill/podmilltest"
)

// api is an API server in memory, with virtual-kubelet before it: it has the statuses that it was notified of.
type api struct {
	mu        sync.Mutex
	pods      map[types.NamespacedName]*corev1.Pod
	told      []string // statuses, as name/uid: phase
	confirmed []types.UID
}

func newAPI() *api { return &api{pods: map[types.NamespacedName]*corev1.Pod{}} }

func (a *api) Pod(namespace, name string) *corev1.Pod {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pods[types.NamespacedName{Namespace: namespace, Name: name}].DeepCopy()
}

func (a *api) Confirm(_ context.Context, pod *corev1.Pod) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.confirmed = append(a.confirmed, pod.UID)
	if now := a.pods[nameOf(pod)]; now != nil && now.UID == pod.UID {
		delete(a.pods, nameOf(pod))
	}
	return nil
}

func (a *api) all() []*corev1.Pod {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []*corev1.Pod
	for _, pod := range a.pods {
		all = append(all, pod.DeepCopy())
	}
	return all
}

// lose has it forget a pod that nobody told anyone of.
func (a *api) lose(pod *corev1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.pods, nameOf(pod))
}

func (a *api) put(pod *corev1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pods[nameOf(pod)] = pod.DeepCopy()
}

// notified takes a status a moment later, as virtual-kubelet's queue does.
func (a *api) notified(pod *corev1.Pod) {
	time.AfterFunc(100*time.Millisecond, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.told = append(a.told, fmt.Sprintf("%s/%s: %s", pod.Name, pod.UID, pod.Status.Phase))
		if now := a.pods[nameOf(pod)]; now != nil {
			now.Status = pod.Status
		}
	})
}

// hiring makes the back end of a world.
type hiring func(w *world, sink podmill.StatusSink) (Backend, error)

// world is a provider between an API server and a back end, in virtual time.
type world struct {
	*Provider
	t    *testing.T
	api  *api
	rt   *podmilltest.Runtime // nil where pods have no containers
	root string
	hire hiring
	stop func()
}

// inWorld runs f with a provider that runs.
func inWorld(t *testing.T, hire hiring, f func(w *world)) {
	t.Helper()
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, api: newAPI(), root: root, hire: hire}
		w.start()
		f(w)
		w.stop()
		if w.rt != nil {
			w.rt.Close()
		}
	})
}

// start starts a process: it is told of the pods that the API has, and then of what changes.
func (w *world) start() {
	w.t.Helper()
	p, backend, err := NewProvider(w.api, func(sink podmill.StatusSink) (Backend, error) { return w.hire(w, sink) })
	if err != nil {
		w.t.Fatal(err)
	}
	w.Provider = p
	p.NotifyPods(w.t.Context(), w.api.notified)
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error)
	go func() { ended <- backend.Run(ctx) }()
	for _, pod := range w.api.all() {
		if err := p.CreatePod(ctx, pod); err != nil {
			w.t.Fatal(err)
		}
	}
	backend.Synced()
	w.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	}
}

// inMemory has pods run in a runtime in memory, which outlives a process.
func inMemory(w *world, sink podmill.StatusSink) (Backend, error) {
	if w.rt == nil {
		w.rt = podmilltest.NewRuntime()
	}
	source := NewSource()
	a, err := agent.New(w.rt, w.root, []podmill.PodSource{source},
		agent.WithStatusSink(sink), agent.WithObjects(podmilltest.NewObjects()), agent.WithVolumes(podmilltest.NewVolumeMounter("/volumes")))
	return Containers{source, a}, err
}

// create does what virtual-kubelet does when a pod is created.
func (w *world) create(pod *corev1.Pod) {
	w.t.Helper()
	w.api.put(pod)
	if found, _ := w.GetPod(w.t.Context(), pod.Namespace, pod.Name); found != nil {
		w.t.Fatalf("pod %s is known before it is created: virtual-kubelet would not create it", pod.Name)
	}
	if err := w.CreatePod(w.t.Context(), pod); err != nil {
		w.t.Fatal(err)
	}
}

// remove does what it does when a deletion is asked for.
func (w *world) remove(pod *corev1.Pod, grace time.Duration) {
	w.t.Helper()
	now := w.api.Pod(pod.Namespace, pod.Name)
	pod = podmilltest.Edit(now, podmilltest.Deleted(grace))
	w.api.put(pod)
	if err := w.DeletePod(w.t.Context(), pod); err != nil {
		w.t.Fatal(err)
	}
}

// pass lets time pass.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// status is what the API has of a pod.
func (w *world) status(pod *corev1.Pod) corev1.PodStatus {
	w.t.Helper()
	now := w.api.Pod(pod.Namespace, pod.Name)
	if now == nil {
		w.t.Fatalf("the API does not know pod %s", pod.Name)
	}
	return now.Status
}

// wantInOrder checks that lines of the runtime's story come in this order.
func (w *world) wantInOrder(lines ...string) {
	w.t.Helper()
	rest := w.rt.Log().String()
	for _, line := range lines {
		_, after, found := strings.Cut(rest, line)
		if !found {
			w.t.Fatalf("%q does not come where it should in\n%s", line, w.rt.Log())
		}
		rest = after
	}
}

package pleg_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

var errFault = errors.New("fault")

// fakeRuntime holds what a test puts there, and misbehaves as told.
type fakeRuntime struct {
	mu       sync.Mutex
	pods     map[types.UID]*podmill.RuntimePod
	lists    int
	inspects map[types.UID]int

	beforeList    func(ctx context.Context) error                // nil: no fault
	beforeInspect func(ctx context.Context, uid types.UID) error // nil: no fault
	afterInspect  func(uid types.UID)                            // between reading and answering
}

func newRuntime() *fakeRuntime {
	return &fakeRuntime{pods: map[types.UID]*podmill.RuntimePod{}, inspects: map[types.UID]int{}}
}

func (r *fakeRuntime) ListPods(ctx context.Context, snap *podmill.Snapshot) error {
	r.mu.Lock()
	r.lists++
	before := r.beforeList
	r.mu.Unlock()
	if before != nil {
		if err := before(ctx); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	snap.Items = snap.Items[:0]
	for _, pod := range r.pods {
		for _, s := range pod.Sandboxes {
			state := podmill.StateExited
			if s.Ready {
				state = podmill.StateRunning
			}
			snap.Items = append(snap.Items, podmill.Item{Pod: pod.PodRef, ID: s.ID, Attempt: s.Attempt, State: state})
		}
		for _, c := range pod.Containers {
			snap.Items = append(snap.Items, podmill.Item{Pod: pod.PodRef, ID: c.ID, Container: c.Name, Attempt: c.Attempt, State: c.State})
		}
	}
	rand.Shuffle(len(snap.Items), func(i, j int) { snap.Items[i], snap.Items[j] = snap.Items[j], snap.Items[i] })
	return nil
}

func (r *fakeRuntime) InspectPod(ctx context.Context, uid types.UID) (*podmill.RuntimePod, error) {
	r.mu.Lock()
	r.inspects[uid]++
	before, after := r.beforeInspect, r.afterInspect
	r.mu.Unlock()
	if before != nil {
		if err := before(ctx, uid); err != nil {
			return nil, err
		}
	}
	pod := r.truth(uid)
	if after != nil {
		after(uid)
	}
	return pod, nil
}

// truth returns a copy of what there is of a pod.
func (r *fakeRuntime) truth(uid types.UID) *podmill.RuntimePod {
	r.mu.Lock()
	defer r.mu.Unlock()
	pod := r.pods[uid]
	if pod == nil {
		return &podmill.RuntimePod{PodRef: podmill.PodRef{UID: uid}}
	}
	clone := *pod
	clone.Sandboxes, clone.Containers = slices.Clone(pod.Sandboxes), slices.Clone(pod.Containers)
	return &clone
}

// set makes the containers those of a pod, newest first, in a ready sandbox; none at all removes the pod.
func (r *fakeRuntime) set(uid types.UID, containers ...podmill.Container) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(containers) == 0 {
		delete(r.pods, uid)
		return
	}
	r.pods[uid] = &podmill.RuntimePod{
		PodRef:     ref(uid),
		Sandboxes:  []podmill.Sandbox{{ID: "sandbox-" + string(uid), Ready: true}},
		Containers: containers,
	}
}

// fault changes what goes wrong.
func (r *fakeRuntime) fault(change func(*fakeRuntime)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(r)
}

func (r *fakeRuntime) listed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lists
}

func (r *fakeRuntime) inspected(uid types.UID) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.inspects[uid]
}

// streamingRuntime has events: those that a test sends.
type streamingRuntime struct {
	*fakeRuntime
	connect chan error // a nil lets the next stream come up, an error refuses it
	events  chan podmill.RuntimeEvent
	broken  chan error
}

func newStreaming() *streamingRuntime {
	return &streamingRuntime{newRuntime(), make(chan error, 10), make(chan podmill.RuntimeEvent), make(chan error)}
}

func (r *streamingRuntime) StreamEvents(ctx context.Context, connected func(), on func(podmill.RuntimeEvent)) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-r.connect:
		if err != nil {
			return err
		}
	}
	connected()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-r.broken:
			return err
		case e := <-r.events:
			on(e)
		}
	}
}

func ref(uid types.UID) podmill.PodRef {
	return podmill.PodRef{UID: uid, Namespace: "default", Name: "pod-" + string(uid)}
}

func container(id string, state podmill.State) podmill.Container {
	return podmill.Container{ID: id, Name: "main", State: state}
}

func running(id string) podmill.Container { return container(id, podmill.StateRunning) }

func exited(id string) podmill.Container { return container(id, podmill.StateExited) }

// hang waits until ctx ends.
func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// notes gathers what was told, in order.
type notes struct {
	mu     sync.Mutex
	events []string
	pods   []types.UID
}

func (n *notes) event(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events = append(n.events, id)
}

func (n *notes) notify(uid types.UID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pods = append(n.pods, uid)
}

// takeEvents returns what was told since the last call.
func (n *notes) takeEvents() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	events := n.events
	n.events = nil
	return events
}

// takePods returns whom notify was called for since the last call.
func (n *notes) takePods() []types.UID {
	n.mu.Lock()
	defer n.mu.Unlock()
	pods := n.pods
	n.pods = nil
	return pods
}

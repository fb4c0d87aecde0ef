package pleg_test

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
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/pleg"
)

// converged is the virtual time within which a PLEG knows the truth when faults have stopped: a call that hangs is given
// up, then the next listing comes or the back-off of an inspection ends, then that inspection is made.
const converged = 2*time.Minute + 90*time.Second

// step is one thing that happens in a runtime that lies.
type step struct {
	Kind string // what happens, see play
	Pod  types.UID
	Wait time.Duration // after it
	// Event is what becomes of the event, if the step makes one: lost, doubled, late, or of another pod.
	Event string
	// Precise says that the events, one for each container, say how far it has come.
	Precise bool
}

func steps() *rapid.Generator[[]step] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		return step{
			Kind: rapid.SampledFrom([]string{
				"start", "start", "exit", "exit", "remove", "remove pod",
				"list fails", "list hangs", "list lies", "inspect fails", "inspect hangs", "one hangs", "all well", "stream breaks",
			}).Draw(t, "kind"),
			Pod:     types.UID(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "pod")),
			Wait:    time.Duration(rapid.SampledFrom([]int{0, 0, 1, 100, 900, 1000, 5000, 61_000}).Draw(t, "wait")) * time.Millisecond,
			Event:   rapid.SampledFrom([]string{"", "", "lost", "lost", "doubled", "late", "other"}).Draw(t, "event"),
			Precise: rapid.Bool().Draw(t, "precise"),
		}
	}), 1, 40)
}

// Whatever a runtime does, once its faults have stopped the truth is known, whoever listens to notices alone knows
// it too, and what was told of each container is one life in the right order.
func TestTheTruthIsKnownOnceFaultsStop(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		script := steps().Draw(rt, "script")
		stream := rapid.Bool().Draw(rt, "stream")
		var problem string
		synctest.Test(t, func(t *testing.T) { problem = play(t, script, stream) })
		if problem != "" {
			rt.Fatal(problem)
		}
	})
}

func play(t *testing.T, script []step, stream bool) string {
	runtime := &lyingRuntime{fakeRuntime: newRuntime(), stream: stream, broken: make(chan struct{}, 1)}
	listener := &listener{view: map[types.UID]*podmill.RuntimePod{}, lives: map[string]string{}, turn: make(chan struct{}, 1)}
	p := pleg.New(runtime, listener.notify, pleg.WithObserver(pleg.Observer{Event: listener.event}))
	listener.pleg = p
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { _ = p.Run(ctx) })
	defer listener.looks.Wait()
	defer run.Wait()
	defer cancel()

	for i, s := range script {
		runtime.do(i, s)
		time.Sleep(s.Wait)
	}
	runtime.faults(nil, nil)
	time.Sleep(converged)
	synctest.Wait()

	known := map[types.UID]*podmill.RuntimePod{}
	pods, _ := p.Pods()
	for _, pod := range pods {
		known[pod.UID] = pod
	}
	if d := cmp.Diff(runtime.pods, known); d != "" {
		return "known otherwise than it is (-is +known):\n" + d
	}
	if d := cmp.Diff(runtime.pods, listener.view); d != "" {
		return "a listener knows otherwise (-is +known):\n" + d
	}
	if err := p.Healthy(); err != nil {
		return err.Error()
	}
	return listener.problem
}

// listener looks again when it is notified, and at no other time.
type listener struct {
	pleg  *pleg.PLEG
	looks sync.WaitGroup
	turn  chan struct{}

	mu      sync.Mutex
	view    map[types.UID]*podmill.RuntimePod
	lives   map[string]string // what was told of each container
	problem string
}

func (l *listener) notify(uid types.UID) {
	l.looks.Go(func() {
		l.turn <- struct{}{} // what is looked at later is newer; a mutex would hold up virtual time
		defer func() { <-l.turn }()
		pod, err := l.pleg.Observe(context.Background(), uid, false)
		l.mu.Lock()
		defer l.mu.Unlock()
		switch {
		case err != nil: // there is another notice when the pod can be inspected again and has changed
		case pod.Empty():
			delete(l.view, uid)
		default:
			l.view[uid] = pod
		}
	})
}

func (l *listener) event(e pleg.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.ID == "" {
		return
	}
	life := l.lives[e.ID] + strings.TrimPrefix(string(e.Type), "Container") + " "
	l.lives[e.ID] = life
	switch strings.TrimPrefix(life, "Started ") {
	case "", "Died ", "Died Removed ":
	default:
		l.problem = fmt.Sprintf("told of %s: %s", e.ID, life)
	}
}

// lyingRuntime does what a script says.
type lyingRuntime struct {
	*fakeRuntime
	stream bool
	broken chan struct{}

	streaming sync.Mutex
	on        func(podmill.RuntimeEvent) // nil while there is no stream
}

func (r *lyingRuntime) do(i int, s step) {
	pod := r.truth(s.Pod)
	switch s.Kind {
	case "start":
		pod.Containers = append([]podmill.Container{running(fmt.Sprintf("%s-%d", s.Pod, i))}, pod.Containers...)
		if pod.Sandboxes == nil {
			pod.PodRef = ref(s.Pod)
			pod.Sandboxes = []podmill.Sandbox{{ID: fmt.Sprintf("sandbox-%s-%d", s.Pod, i), Ready: true}}
		}
	case "exit":
		for j := range pod.Containers {
			pod.Containers[j].State = podmill.StateExited
		}
	case "remove":
		pod.Containers = pod.Containers[:max(0, len(pod.Containers)-1)]
	case "remove pod":
		pod.Containers = nil
	case "list fails":
		r.faults(func(context.Context) error { return errFault }, nil)
	case "list hangs":
		r.faults(hang, nil)
	case "list lies":
		r.faults(func(context.Context) error { return errLie }, nil)
	case "inspect fails":
		r.faults(nil, func(context.Context, types.UID) error { return errFault })
	case "inspect hangs":
		r.faults(nil, func(ctx context.Context, _ types.UID) error { return hang(ctx) })
	case "one hangs":
		r.faults(nil, func(ctx context.Context, uid types.UID) error {
			if uid == s.Pod {
				return hang(ctx)
			}
			return nil
		})
	case "all well":
		r.faults(nil, nil)
	case "stream breaks":
		select {
		case r.broken <- struct{}{}:
		default:
		}
	}
	r.put(s.Pod, pod)
	r.send(s)
}

func (r *lyingRuntime) put(uid types.UID, pod *podmill.RuntimePod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(pod.Containers) == 0 {
		delete(r.pods, uid)
		return
	}
	r.pods[uid] = pod
}

func (r *lyingRuntime) send(s step) {
	r.streaming.Lock()
	on := r.on
	r.streaming.Unlock()
	if on == nil {
		return
	}
	var events []podmill.RuntimeEvent
	for _, c := range r.truth(s.Pod).Containers {
		events = append(events, podmill.RuntimeEvent{ID: c.ID, State: c.State})
	}
	if !s.Precise || len(events) == 0 {
		events = []podmill.RuntimeEvent{{}}
	}
	tell := func(pod types.UID) {
		for _, e := range events {
			e.Pod = pod
			on(e)
		}
	}
	switch s.Event {
	case "lost":
	case "doubled":
		tell(s.Pod)
		tell(s.Pod)
	case "late":
		time.AfterFunc(3*time.Second, func() { tell(s.Pod) })
	case "other":
		tell("nobody")
	default:
		tell(s.Pod)
	}
}

func (r *lyingRuntime) faults(list func(context.Context) error, inspect func(context.Context, types.UID) error) {
	r.fault(func(f *fakeRuntime) { f.beforeList, f.beforeInspect = list, inspect })
}

var errLie = errors.New("lie")

// ListPods may claim that there is nothing at all.
func (r *lyingRuntime) ListPods(ctx context.Context, snap *podmill.Snapshot) error {
	err := r.fakeRuntime.ListPods(ctx, snap)
	if errors.Is(err, errLie) {
		snap.Items = snap.Items[:0]
		return nil
	}
	return err
}

func (r *lyingRuntime) StreamEvents(ctx context.Context, connected func(), on func(podmill.RuntimeEvent)) error {
	if !r.stream {
		return errors.ErrUnsupported
	}
	r.streaming.Lock()
	r.on = on
	r.streaming.Unlock()
	connected()
	defer func() {
		r.streaming.Lock()
		r.on = nil
		r.streaming.Unlock()
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-r.broken:
		return errFault
	}
}

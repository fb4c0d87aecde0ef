package podmilltest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// FaultyRuntime is a runtime whose calls go wrong as its faults say. [podmill.As] finds the runtime below it.
type FaultyRuntime struct {
	podmill.Runtime
	log *Log // of the in-memory runtime below, nil where there is none

	mu     sync.Mutex
	faults []*armed
	owners map[string]target // of sandboxes and containers, by ID
	listed []podmill.Item    // the last listing that was not stale
	seen   map[types.UID]*podmill.RuntimePod
}

var (
	_ podmill.Runtime        = (*FaultyRuntime)(nil)
	_ podmill.EventStreamer  = (*FaultyRuntime)(nil)
	_ podmill.StatusReporter = (*FaultyRuntime)(nil)
	_ podmill.LogReopener    = (*FaultyRuntime)(nil)
	_ podmill.Resizer        = (*FaultyRuntime)(nil)
)

// Faulty wraps a runtime.
func Faulty(rt podmill.Runtime, faults ...Fault) *FaultyRuntime {
	f := &FaultyRuntime{Runtime: rt, owners: map[string]target{}, seen: map[types.UID]*podmill.RuntimePod{}}
	if r, ok := podmill.As[*Runtime](rt); ok {
		f.log = r.log
	}
	f.Add(faults...)
	return f
}

// Unwrap returns the runtime below.
func (f *FaultyRuntime) Unwrap() podmill.Runtime { return f.Runtime }

// Add adds faults.
func (f *FaultyRuntime) Add(faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, fault := range faults {
		f.faults = append(f.faults, &armed{Fault: fault, seen: map[target]int{}})
	}
}

// Clear takes all faults away. A call that hangs goes on hanging.
func (f *FaultyRuntime) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = nil
}

// strike returns the fault that a call meets, nil if it meets none.
func (f *FaultyRuntime) strike(t target) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.faults, func(a *armed) bool { return a.strikes(t) })
	if i < 0 {
		return nil
	}
	fault := &f.faults[i].Fault
	if f.log != nil {
		f.log.Note("fault: %s", strings.Join(strings.Fields(fmt.Sprint(t.op, " ", t.pod, " ", t.container, " ", fault.Name)), " "))
	}
	return fault
}

// around makes a call, or what a fault makes of it.
func (f *FaultyRuntime) around(ctx context.Context, t target, call func() error) error {
	return f.strike(t).around(ctx, call)
}

// about returns what a call concerns that names a sandbox or a container by its ID.
func (f *FaultyRuntime) about(op Op, id string) target {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.owners[id]
	t.op = op
	return t
}

func (f *FaultyRuntime) learn(id string, pod types.UID, container string) {
	f.owners[id] = target{pod: pod, container: container}
}

// ListPods implements [podmill.Lister].
func (f *FaultyRuntime) ListPods(ctx context.Context, snap *podmill.Snapshot) error {
	fault := f.strike(target{op: OpListPods})
	if err := fault.around(ctx, func() error { return f.Runtime.ListPods(ctx, snap) }); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range snap.Items {
		f.learn(snap.Items[i].ID, snap.Items[i].Pod.UID, snap.Items[i].Container)
	}
	switch {
	case fault != nil && fault.stale:
		snap.Items = append(snap.Items[:0], f.listed...)
		return nil
	case fault != nil && fault.omit:
		fault.trim(snap)
	}
	f.listed = append(f.listed[:0], snap.Items...)
	return nil
}

// InspectPod implements [podmill.Lister].
func (f *FaultyRuntime) InspectPod(ctx context.Context, uid types.UID) (seen *podmill.RuntimePod, err error) {
	fault := f.strike(target{op: OpInspectPod, pod: uid})
	err = fault.around(ctx, func() (err error) {
		seen, err = f.Runtime.InspectPod(ctx, uid)
		return err
	})
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range seen.Sandboxes {
		f.learn(seen.Sandboxes[i].ID, uid, "")
	}
	for i := range seen.Containers {
		f.learn(seen.Containers[i].ID, uid, seen.Containers[i].Name)
	}
	switch {
	case fault != nil && fault.stale && f.seen[uid] != nil:
		return f.seen[uid], nil
	case fault != nil && fault.stale:
		return &podmill.RuntimePod{PodRef: podmill.PodRef{UID: uid}}, nil
	case fault != nil && fault.omit:
		seen = fault.trimPod(seen)
	}
	f.seen[uid] = seen
	return seen, nil
}

// RunSandbox implements [podmill.SandboxRunner].
func (f *FaultyRuntime) RunSandbox(ctx context.Context, spec *podmill.SandboxSpec) (id string, err error) {
	err = f.around(ctx, target{op: OpRunSandbox, pod: spec.Pod.UID}, func() (err error) {
		id, err = f.Runtime.RunSandbox(ctx, spec)
		return err
	})
	return f.made(id, err, spec.Pod.UID, "")
}

// CreateContainer implements [podmill.ContainerRunner].
func (f *FaultyRuntime) CreateContainer(ctx context.Context, spec *podmill.ContainerSpec) (id string, err error) {
	uid, name := spec.Sandbox.Pod.UID, spec.Container.Name
	err = f.around(ctx, target{op: OpCreateContainer, pod: uid, container: name}, func() (err error) {
		id, err = f.Runtime.CreateContainer(ctx, spec)
		return err
	})
	return f.made(id, err, uid, name)
}

// made remembers whose an ID is, and gives it away only where the call went well.
func (f *FaultyRuntime) made(id string, err error, pod types.UID, container string) (string, error) {
	if id != "" {
		f.mu.Lock()
		f.learn(id, pod, container)
		f.mu.Unlock()
	}
	if err != nil {
		return "", err
	}
	return id, nil
}

// StopSandbox implements [podmill.SandboxRunner].
func (f *FaultyRuntime) StopSandbox(ctx context.Context, id string) error {
	return f.around(ctx, f.about(OpStopSandbox, id), func() error { return f.Runtime.StopSandbox(ctx, id) })
}

// RemoveSandbox implements [podmill.SandboxRunner].
func (f *FaultyRuntime) RemoveSandbox(ctx context.Context, id string) error {
	return f.around(ctx, f.about(OpRemoveSandbox, id), func() error { return f.Runtime.RemoveSandbox(ctx, id) })
}

// StartContainer implements [podmill.ContainerRunner].
func (f *FaultyRuntime) StartContainer(ctx context.Context, id string) error {
	return f.around(ctx, f.about(OpStartContainer, id), func() error { return f.Runtime.StartContainer(ctx, id) })
}

// StopContainer implements [podmill.ContainerRunner].
func (f *FaultyRuntime) StopContainer(ctx context.Context, id string, grace time.Duration) error {
	return f.around(ctx, f.about(OpStopContainer, id), func() error { return f.Runtime.StopContainer(ctx, id, grace) })
}

// RemoveContainer implements [podmill.ContainerRunner].
func (f *FaultyRuntime) RemoveContainer(ctx context.Context, id string) error {
	return f.around(ctx, f.about(OpRemoveContainer, id), func() error { return f.Runtime.RemoveContainer(ctx, id) })
}

package podmilltest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// Runtime is a container runtime in memory. It keeps every promise of [podmill.Runtime] and of the optional interfaces
// [podmill.EventStreamer], [podmill.StatusReporter], [podmill.LogReopener] and [podmill.Resizer], with containers that are small scripts.
//
// It tells the time by package time alone, so that it runs in real time and in the virtual time of testing/synctest. It has no
// goroutine of its own; [Runtime.Close] stops what its containers still have to do.
type Runtime struct {
	options
	log *Log

	mu         sync.Mutex
	pods       map[types.UID]*pod
	order      []*pod // by seq
	sandboxes  map[string]*sandbox
	containers map[string]*container
	images     map[string]*storedImage // by every name and ID
	status     podmill.RuntimeStatus
	watchers   map[*watcher]struct{}
	seq        int // grows with everything that is made
	closed     bool
}

var (
	_ podmill.Runtime        = (*Runtime)(nil)
	_ podmill.EventStreamer  = (*Runtime)(nil)
	_ podmill.StatusReporter = (*Runtime)(nil)
	_ podmill.LogReopener    = (*Runtime)(nil)
	_ podmill.Resizer        = (*Runtime)(nil)
)

// pod is what the runtime holds under one UID.
type pod struct {
	podmill.PodRef
	seq        int
	sandboxes  []*sandbox // the newest attempt first
	containers []*container
}

// NewRuntime returns an empty runtime.
func NewRuntime(opts ...Option) *Runtime {
	r := &Runtime{
		log:        newLog(),
		pods:       map[types.UID]*pod{},
		sandboxes:  map[string]*sandbox{},
		containers: map[string]*container{},
		images:     map[string]*storedImage{},
		watchers:   map[*watcher]struct{}{},
		status: podmill.RuntimeStatus{
			Name: "podmilltest", Version: "1", CgroupDriver: "cgroupfs",
			RuntimeReady: podmill.Condition{OK: true}, NetworkReady: podmill.Condition{OK: true},
		},
	}
	for _, opt := range opts {
		opt(&r.options)
	}
	for _, image := range r.local {
		r.store(image)
	}
	return r
}

// Log returns the log of what happens in the runtime.
func (r *Runtime) Log() *Log { return r.log }

// Close stops every container's timers and closes their logs. Nothing happens in the runtime by itself any more.
func (r *Runtime) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, c := range r.containers {
		c.halt()
	}
}

// call does the work of one call: it notes it in the log, waits for the operation's latency, and has do called with r.mu held
// in the middle of it.
func (r *Runtime) call(ctx context.Context, op Op, about string, do func() error) error {
	end := r.log.begin(op, about)
	err := r.delayed(ctx, op, do)
	end(err)
	return err
}

func (r *Runtime) delayed(ctx context.Context, op Op, do func() error) error {
	half := r.latency[op] / 2
	if err := pause(ctx, half); err != nil {
		return err
	}
	r.mu.Lock()
	err := do()
	r.mu.Unlock()
	if err != nil {
		return err
	}
	return pause(ctx, half)
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// podOf returns what the runtime holds of a pod, made where it is not there.
func (r *Runtime) podOf(ref podmill.PodRef) *pod {
	p := r.pods[ref.UID]
	if p == nil {
		r.seq++
		p = &pod{PodRef: ref, seq: r.seq}
		r.pods[ref.UID] = p
		r.order = append(r.order, p)
	}
	return p
}

// forget drops a pod of which nothing is left.
func (r *Runtime) forget(p *pod) {
	if len(p.sandboxes)+len(p.containers) > 0 || r.pods[p.UID] != p {
		return
	}
	delete(r.pods, p.UID)
	at, _ := slices.BinarySearchFunc(r.order, p.seq, func(o *pod, seq int) int { return o.seq - seq })
	r.order = slices.Delete(r.order, at, at+1)
}

// newID returns an ID of the form that runtimes use: 64 hexadecimal digits, the same in every run.
func (r *Runtime) newID(kind, name string) string {
	r.seq++
	return digest(fmt.Sprintf("%s %s %d", kind, name, r.seq))
}

// podName is how the log names a pod.
func podName(ref podmill.PodRef) string { return ref.Namespace + "/" + ref.Name }

package syncpod

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// beside are the hooks that run beside one call of a [Syncer]. They end with it: none outlives the call that began it.
type beside struct {
	*Syncer
	ctx    context.Context //nolint:containedctx // of the call
	cancel context.CancelFunc
	pod    *corev1.Pod
	keeper *keeper
	all    sync.WaitGroup

	mu      sync.Mutex
	running map[hookKey]chan struct{} // closed when the hook is over
	over    chan struct{}             // has something in it when one is
	failed  []hookFailure             // of postStart hooks
}

// hookKey names a hook that runs.
type hookKey struct {
	id      string // of the container
	preStop bool
}

// hookFailure is a postStart hook that failed, and why.
type hookFailure struct{ container, id, message string }

// hookLook is how often it is looked, while hooks run, at what else becomes of the pod.
const hookLook = time.Second

// hooksOf returns what runs the hooks of one call. cut has to be called at its end.
func (s *Syncer) hooksOf(ctx context.Context, pod *corev1.Pod, k *keeper) *beside {
	b := &beside{Syncer: s, pod: pod, keeper: k, running: map[hookKey]chan struct{}{}, over: make(chan struct{}, 1)}
	b.ctx, b.cancel = context.WithCancel(ctx)
	return b
}

// cut ends the hooks that still run, and waits for that.
func (b *beside) cut() {
	b.cancel()
	b.all.Wait()
}

// postStart begins the postStart hook of a container that was started. It may take as long as it likes: until its container ends, or its pod
// is told to.
func (b *beside) postStart(h *hook) {
	b.begin(hookKey{id: h.id}, 0, func(ctx context.Context) func() {
		message, err := b.runHook(ctx, b.pod, h)
		if b.ctx.Err() != nil {
			return nil // the next call will find that it was begun, and no more
		}
		return func() {
			if err == nil {
				logFailure(ctx, b.pod, "after a restart of the agent a container will be restarted, too", b.keeper.postStartSucceeded(h.container.Name))
				return
			}
			logFailure(ctx, b.pod, "the postStart hook of container "+h.container.Name+" failed", err)
			b.event(b.pod, h.container.Name, corev1.EventTypeWarning, eventFailedPostStart, "PostStartHook failed")
			b.failed = append(b.failed, hookFailure{h.container.Name, h.id, message})
		}
	})
}

// preStop begins the preStop hook of a container that has to stop, and gives it no more than its grace. It is over after that, whatever came of it.
func (b *beside) preStop(seen *podmill.RuntimePod, p *PreStop) {
	sandbox := sandboxOf(seen, p.ID)
	h := &hook{
		container: p.Container, handler: p.Container.Lifecycle.PreStop, id: p.ID, address: b.addressOf(sandbox.HostNetwork, sandbox),
	}
	b.begin(hookKey{p.ID, true}, p.Grace, func(ctx context.Context) func() {
		_, err := b.runHook(ctx, b.pod, h)
		if b.ctx.Err() != nil {
			return nil // the next call will run it again, in what is left of the grace
		}
		return func() {
			if err != nil && h.handler.Sleep == nil { // that there was no time to sleep longer is no failure
				logFailure(ctx, b.pod, "the preStop hook of container "+p.Name+" failed", err)
				b.event(b.pod, p.Name, corev1.EventTypeWarning, eventFailedPreStop, "PreStopHook failed")
			}
			logFailure(ctx, b.pod, "after a restart of the agent a preStop hook will run again", b.keeper.preStopOver(p.Name, p.ID))
		}
	})
}

// begin runs a hook beside the call, for at most grace where that is not zero. What it returns is done at its end, and nobody sees it over
// before that, nor half-way.
func (b *beside) begin(key hookKey, grace time.Duration, run func(ctx context.Context) (end func())) {
	ctx, cancel := bounded(b.ctx, grace)
	over := make(chan struct{})
	b.mu.Lock()
	b.running[key] = over
	b.mu.Unlock()
	b.all.Go(func() { b.watch(ctx, cancel, key.id) })
	b.all.Go(func() {
		defer cancel()
		end := run(ctx)
		b.mu.Lock()
		defer b.mu.Unlock()
		if end != nil {
			end()
		}
		delete(b.running, key)
		close(over)
		select {
		case b.over <- struct{}{}:
		default:
		}
	})
}

func bounded(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit > 0 {
		return context.WithTimeout(ctx, limit)
	}
	return context.WithCancel(ctx)
}

// watch ends a hook whose container has ended. Only that it was seen to have exited counts: what is known may be older than the container.
func (b *beside) watch(ctx context.Context, cancel context.CancelFunc, id string) {
	ticker := time.NewTicker(hookLook)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		seen, err := b.Cache.Observe(ctx, b.pod.UID, false)
		if err == nil && anyOf(seen.Containers, func(c *podmill.Container) bool { return c.ID == id && c.State == podmill.StateExited }) {
			cancel()
		}
	}
}

// await waits for the preStop hook of a container, if one runs.
func (b *beside) await(ctx context.Context, id string) error {
	b.mu.Lock()
	over := b.running[hookKey{id, true}]
	b.mu.Unlock()
	if over != nil {
		select {
		case <-over:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// wait waits until a hook is over, or has taken a while, and reports that the pod has to be looked at again. If none has run it does not
// wait.
func (b *beside) wait() bool {
	b.mu.Lock()
	none := len(b.running)+len(b.over) == 0
	b.mu.Unlock()
	if none {
		return false
	}
	timer := time.NewTimer(hookLook)
	defer timer.Stop()
	select {
	case <-b.over:
	case <-timer.C:
	case <-b.ctx.Done():
	}
	return b.ctx.Err() == nil
}

// states returns, by container ID, how the hooks stand, and hands over those that have failed since it was last called.
func (b *beside) states(failed func(hookFailure)) map[string]Hooks {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.failed {
		failed(f)
	}
	b.failed = nil
	states := b.keeper.hooks()
	if states == nil && len(b.running) > 0 {
		states = map[string]Hooks{}
	}
	for key := range b.running {
		s := states[key.id]
		if key.preStop {
			s.PreStop = true
		} else {
			s.PostStart = PostStartRuns
		}
		states[key.id] = s
	}
	return states
}

// sandboxOf returns the sandbox of a container that was seen; an empty one, without an address, if it was not.
func sandboxOf(seen *podmill.RuntimePod, id string) *podmill.Sandbox {
	for i := range seen.Containers {
		for j := range seen.Sandboxes {
			if seen.Containers[i].ID == id && seen.Sandboxes[j].ID == seen.Containers[i].SandboxID {
				return &seen.Sandboxes[j]
			}
		}
	}
	return &podmill.Sandbox{}
}

package podmilltest

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// watcher is a stream of events. The pods that changed wait in a set that is no longer than there are pods.
type watcher struct {
	pods  []types.UID // in the order in which they changed
	known map[types.UID]bool
	wake  chan struct{}
	stop  error
}

// StreamEvents implements [podmill.EventStreamer]. Changes of one pod that come faster than they are taken are one event.
func (r *Runtime) StreamEvents(ctx context.Context, connected func(), on func(podmill.RuntimeEvent)) error {
	if r.quiet {
		return errors.ErrUnsupported
	}
	end := r.log.begin(OpStreamEvents, "")
	err := r.stream(ctx, connected, on)
	end(err)
	return err
}

func (r *Runtime) stream(ctx context.Context, connected func(), on func(podmill.RuntimeEvent)) error {
	w := &watcher{known: map[types.UID]bool{}, wake: make(chan struct{}, 1)}
	err := r.delayed(ctx, OpStreamEvents, func() error {
		r.watchers[w] = struct{}{}
		return nil
	})
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.watchers, w)
	}()
	if err != nil {
		return err
	}
	connected()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.wake:
		}
		r.mu.Lock()
		pods, stop := w.pods, w.stop
		w.pods = nil
		clear(w.known)
		r.mu.Unlock()
		for _, uid := range pods {
			on(podmill.RuntimeEvent{Pod: uid})
		}
		if stop != nil {
			return stop
		}
	}
}

// changed tells the streams that something of a pod has changed.
func (r *Runtime) changed(p *pod) {
	for w := range r.watchers {
		if !w.known[p.UID] {
			w.known[p.UID] = true
			w.pods = append(w.pods, p.UID)
			w.signal()
		}
	}
}

func (w *watcher) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

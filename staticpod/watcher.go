package staticpod

import (
	"context"
	"sync"

	"github.com/podmill/podmill"
)

// watcher is somebody who watches objects. What he was not told yet gathers in a set, so that nobody waits for him.
type watcher struct {
	wake chan struct{} // holds one token

	mu   sync.Mutex
	refs map[podmill.ObjectRef]bool
}

func (w *watcher) add(ref podmill.ObjectRef) {
	w.mu.Lock()
	w.refs[ref] = true
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *watcher) take() map[podmill.ObjectRef]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	refs := w.refs
	w.refs = map[podmill.ObjectRef]bool{}
	return refs
}

// WatchObjects tells of the ConfigMaps and Secrets that change from now on, as long as Run runs. It returns nil when ctx ends.
func (d *Directory) WatchObjects(ctx context.Context, changed func(podmill.ObjectRef)) error {
	w := &watcher{wake: make(chan struct{}, 1), refs: map[podmill.ObjectRef]bool{}}
	d.mu.Lock()
	d.watchers[w] = true
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		delete(d.watchers, w)
		d.mu.Unlock()
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.wake:
			for ref := range w.take() {
				changed(ref)
			}
		}
	}
}

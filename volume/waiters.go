package volume

import (
	"sync"

	"github.com/podmill/podmill"
)

// waiters are the volumes that are being made ready, by the objects that they are made of.
type waiters struct {
	mu    sync.Mutex
	byRef map[podmill.ObjectRef]map[chan struct{}]struct{}
}

// add returns a channel that has a token after one of the objects has changed, until forget is called.
func (w *waiters) add(refs []podmill.ObjectRef) (changed <-chan struct{}, forget func()) {
	if len(refs) == 0 {
		return nil, func() {}
	}
	token := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ref := range refs {
		if w.byRef == nil {
			w.byRef = map[podmill.ObjectRef]map[chan struct{}]struct{}{}
		}
		if w.byRef[ref] == nil {
			w.byRef[ref] = map[chan struct{}]struct{}{}
		}
		w.byRef[ref][token] = struct{}{}
	}
	return token, func() { w.remove(refs, token) }
}

func (w *waiters) remove(refs []podmill.ObjectRef, token chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ref := range refs {
		delete(w.byRef[ref], token)
		if len(w.byRef[ref]) == 0 {
			delete(w.byRef, ref)
		}
	}
}

func (w *waiters) wake(ref podmill.ObjectRef) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for token := range w.byRef[ref] {
		select {
		case token <- struct{}{}:
		default:
		}
	}
}

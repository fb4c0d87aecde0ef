package volume

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// ledger has the pods whose volumes this process made, or is making or taking away. It lets one call at a time work on a pod.
type ledger struct {
	mu   sync.Mutex
	pods map[types.UID]*podState
}

type podState struct {
	turn    chan struct{} // has a token while a call works on the pod
	leaving bool          // guarded by the ledger's lock
	ready   map[string]podmill.Volume
}

func (s *podState) done() { <-s.turn }

// mount begins making volumes ready, and fails while they are being taken away.
func (l *ledger) mount(ctx context.Context, uid types.UID) (*podState, error) {
	for {
		state, err := l.take(ctx, uid, func(s *podState) error {
			if s.leaving {
				return ErrUnmounting
			}
			return nil
		})
		if state != nil || err != nil {
			return state, err
		}
		// Its volumes were taken away while this waited, completely: it starts anew.
	}
}

// unmount begins taking volumes away. It returns nil if somebody else has just done that.
func (l *ledger) unmount(ctx context.Context, uid types.UID) (*podState, error) {
	return l.take(ctx, uid, func(s *podState) error {
		s.leaving = true
		return nil
	})
}

// orphan begins taking away volumes that this process did not make. It returns nil if there is nothing to do: for those that it made, who
// asked for them will ask for their end.
func (l *ledger) orphan(ctx context.Context, uid types.UID) (*podState, error) {
	l.mu.Lock()
	known := l.pods[uid] != nil
	if !known {
		l.put(uid).leaving = true
	}
	l.mu.Unlock()
	if known {
		return nil, nil
	}
	return l.unmount(ctx, uid)
}

// take waits for the pod's turn. It returns nil if the pod was forgotten meanwhile.
func (l *ledger) take(ctx context.Context, uid types.UID, enter func(*podState) error) (*podState, error) {
	if !isName(string(uid)) {
		return nil, fmt.Errorf("UID %q is no name for a directory", uid)
	}
	l.mu.Lock()
	state := l.put(uid)
	err := enter(state)
	l.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case state.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pods[uid] != state {
		state.done()
		return nil, nil
	}
	if err := enter(state); err != nil {
		state.done()
		return nil, err
	}
	return state, nil
}

func (l *ledger) put(uid types.UID) *podState {
	if l.pods == nil {
		l.pods = map[types.UID]*podState{}
	}
	if l.pods[uid] == nil {
		l.pods[uid] = &podState{turn: make(chan struct{}, 1), ready: map[string]podmill.Volume{}}
	}
	return l.pods[uid]
}

// forget says that nothing is left of a pod, or nothing that this process knows of.
func (l *ledger) forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pods, uid)
}

package volume

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/filename"
)

// ledger has the pods whose volumes this process made, or is making or taking away. It lets one call at a time work on a pod.
type ledger struct {
	mu   sync.Mutex
	pods map[types.UID]*podState
}

type podState struct {
	turn    chan struct{} // has a token while a call works on the pod
	leaving bool          // guarded by the ledger's lock
	ready   map[string]readyVolume
}

// readyVolume is a volume that is ready, and where its plugin has it.
type readyVolume struct {
	podmill.Volume
	place Place
}

func (s *podState) done() { <-s.turn }

// mount begins making volumes ready, and fails while they are being taken away.
func (l *ledger) mount(ctx context.Context, uid types.UID) (*podState, error) {
	return l.take(ctx, uid, func(s *podState) error {
		if s.leaving {
			return ErrUnmounting
		}
		return nil
	})
}

// unmount begins taking volumes away.
func (l *ledger) unmount(ctx context.Context, uid types.UID) (*podState, error) {
	return l.take(ctx, uid, func(s *podState) error {
		s.leaving = true
		return nil
	})
}

// orphan begins taking away volumes that this process did not make; whoever wants to make them waits. It returns nil if this process made
// them, or is about to: who asked for them will ask for their end.
func (l *ledger) orphan(uid types.UID) *podState {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pods[uid] != nil {
		return nil
	}
	state := l.put(uid)
	state.turn <- struct{}{}
	return state
}

// take enters a pod's state and waits for its turn.
func (l *ledger) take(ctx context.Context, uid types.UID, enter func(*podState) error) (*podState, error) {
	if !filename.Valid(string(uid)) {
		return nil, fmt.Errorf("UID %q is no name for a directory", uid)
	}
	for {
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
		if err = l.reenter(uid, state, enter); err == nil {
			return state, nil
		}
		state.done()
		if !errors.Is(err, errForgotten) {
			return nil, err
		}
	}
}

// errForgotten says that a pod's state is no longer its state: it was taken away while somebody waited for his turn.
var errForgotten = errors.New("forgotten")

// reenter enters a state again when its turn has come, for it may have changed meanwhile.
func (l *ledger) reenter(uid types.UID, state *podState, enter func(*podState) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pods[uid] != state {
		return errForgotten
	}
	return enter(state)
}

func (l *ledger) put(uid types.UID) *podState {
	if l.pods == nil {
		l.pods = map[types.UID]*podState{}
	}
	if l.pods[uid] == nil {
		l.pods[uid] = &podState{turn: make(chan struct{}, 1), ready: map[string]readyVolume{}}
	}
	return l.pods[uid]
}

// forget says that nothing is left of a pod, or nothing that this process knows of.
func (l *ledger) forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pods, uid)
}

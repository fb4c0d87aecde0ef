package cri

import (
	"context"
	"io"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
)

const (
	// longestTurn is for how long a call counts. One that hangs, or that waits for something else than a processor, keeps nobody out for longer.
	longestTurn = 3 * time.Second
	// idleLook is how often it is looked whether processors are idle while calls wait.
	idleLook = 100 * time.Millisecond
)

// turns let as many calls be under way as there are processors: each keeps one busy nearly as long as it takes, and more of them at a time are slower together than one
// after the other. Where processors are idle all the same, because the runtime waits for a network or a disk, more calls are let in. Nil turns bound nothing.
type turns struct {
	idle func() int // how many processors had nothing to do since it was asked last
	stat io.Closer  // of idle

	mu      sync.Mutex
	free    int // less than zero while more calls are under way because processors were idle
	waiting []*waiter
	looking bool // for idle processors
}

// waiter is a call whose turn has not come.
type waiter struct {
	urgency
	turn chan struct{} // closed when it has
}

// urgency says who is next: what has been begun is brought to its end before anything new begins, then a pod of higher priority goes first, then who came first.
type urgency struct {
	stage    stage
	priority int32
}

// stage is how far a pod has come.
type stage int

const (
	newSandbox stage = iota
	newContainer
	madeContainer
)

func (u urgency) before(v urgency) bool {
	return u.stage > v.stage || u.stage == v.stage && u.priority > v.priority
}

func urgencyOf(pod *corev1.Pod, s stage) urgency {
	u := urgency{stage: s}
	if pod.Spec.Priority != nil {
		u.priority = *pod.Spec.Priority
	}
	return u
}

// inTurn makes a call when its turn comes. Its deadline does not run before.
func inTurn[Q, R any](ctx context.Context, c *Client, u urgency, o op, do func(context.Context, Q, ...grpc.CallOption) (R, error), request Q) (R, error) {
	done, err := c.turns.take(ctx, u)
	if err != nil {
		var none R
		return none, o.failed(ctx, ctx, status.FromContextError(err).Err())
	}
	defer done()
	return call(ctx, c, o, do, request)
}

func (t *turns) close() error {
	if t == nil {
		return nil
	}
	return t.stat.Close()
}

// take waits for a turn, and returns what ends it. The error is that of ctx, if this ended before.
func (t *turns) take(ctx context.Context, u urgency) (done func(), err error) {
	if t == nil {
		return func() {}, nil
	}
	w := t.ask(u)
	select {
	case <-w.turn:
	case <-ctx.Done():
		if !t.withdraw(w) {
			t.end()
		}
		return nil, ctx.Err()
	}
	end := sync.OnceFunc(t.end)
	tooLong := time.AfterFunc(longestTurn, end)
	return func() {
		tooLong.Stop()
		end()
	}, nil
}

func (t *turns) ask(u urgency) *waiter {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &waiter{urgency: u, turn: make(chan struct{})}
	t.waiting = append(t.waiting, w)
	if t.free > 0 {
		t.next()
	} else if !t.looking {
		t.looking = true
		time.AfterFunc(idleLook, t.look)
	}
	return w
}

// withdraw takes back a waiter; false says that its turn has come.
func (t *turns) withdraw(w *waiter) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.waiting, w)
	if i < 0 {
		return false
	}
	t.waiting = slices.Delete(t.waiting, i, i+1)
	return true
}

func (t *turns) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free++
	if t.free > 0 && len(t.waiting) > 0 {
		t.next()
	}
}

// next gives the turn to who is the most urgent. Callers hold mu.
func (t *turns) next() {
	first := 0
	for i, w := range t.waiting {
		if w.before(t.waiting[first].urgency) {
			first = i
		}
	}
	t.free--
	close(t.waiting[first].turn)
	t.waiting = slices.Delete(t.waiting, first, first+1)
}

// look lets in one call for each processor that was idle, and goes on while others wait.
func (t *turns) look() {
	idle := t.idle()
	t.mu.Lock()
	defer t.mu.Unlock()
	for range min(idle, len(t.waiting)) {
		t.next()
	}
	if t.looking = len(t.waiting) > 0; t.looking {
		time.AfterFunc(idleLook, t.look)
	}
}

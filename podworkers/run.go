package podworkers

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/podmill/podmill"
)

// The goroutines: Run itself, which waits for the schedule, and those that sync. Everything that they share is under the
// workers' lock, which nobody holds while a Syncer is called.

// crew is the goroutines of one Run, and the pods that they are to sync.
type crew struct {
	ctx    context.Context // of syncs: it has the values of Run's and does not end
	log    logr.Logger
	syncs  sync.WaitGroup
	ready  queue // pods to be synced at once
	size   int   // goroutines
	coming bool  // one of them was started and has not taken a pod yet
	closed bool  // no further sync begins
}

// Run syncs pods until ctx ends; then it cancels the syncs in flight and returns when they have ended. What was not synced
// stays as it is, and a later Run goes on where this one stopped. It returns nil, or an error at once if the workers run
// already.
func (w *Workers) Run(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	// Syncs are cancelled one by one, by hand: a parent that ends keeps a list of its children, which costs more than the rest
	// of a dispatch.
	c := &crew{ctx: context.WithoutCancel(ctx), log: logr.FromContextOrDiscard(ctx)}
	if !w.open(c) {
		return errors.New("the pod workers run already")
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			w.close(context.Cause(ctx))
			return nil
		case <-w.wake:
		case <-timer.C:
		}
		if next, ok := w.launchDue(time.Now()); ok {
			timer.Reset(time.Until(next))
		}
	}
}

// open lets syncs begin, with all that are due, in the order in which the pods came.
func (w *Workers) open(c *crew) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.crew != nil {
		return false
	}
	w.crew = c
	byArrival := func(a, b *incarnation) int { return cmp.Compare(a.arrival, b.arrival) }
	for _, inc := range slices.SortedFunc(maps.Values(w.pods), byArrival) {
		w.settle(inc)
	}
	return true
}

// close lets no further sync begin, cancels those in flight and waits for them.
func (w *Workers) close(cause error) {
	w.mu.Lock()
	c := w.crew
	c.closed = true
	for c.ready.pop() != nil {
		continue
	}
	for _, inc := range w.pods {
		if inc.running {
			inc.abort()
			inc.cancel(cause)
		}
	}
	w.mu.Unlock()
	c.syncs.Wait()
	w.mu.Lock()
	w.crew = nil
	w.mu.Unlock()
}

// launchDue begins the syncs whose time has come and says when it has to be called again, if it has to.
func (w *Workers) launchDue(now time.Time) (next time.Time, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for inc := w.schedule.due(now); inc != nil; inc = w.schedule.due(now) {
		if inc.running {
			continue // it comes back when the sync ends
		}
		if at, ok := inc.due(); ok && at.After(now) {
			w.schedule.put(inc, at)
		} else if ok {
			w.launch(inc)
		}
	}
	return w.schedule.next()
}

// settle sees to it that a pod's next sync takes place when it is due.
func (w *Workers) settle(inc *incarnation) {
	if inc.running {
		return
	}
	switch at, ok := inc.due(); {
	case !ok:
	case at.IsZero():
		w.launch(inc)
	case w.schedule.put(inc, at):
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// launch puts a pod among those to be synced at once.
func (w *Workers) launch(inc *incarnation) {
	if w.crew == nil || w.crew.closed || inc.queued {
		return
	}
	w.crew.ready.push(inc)
	w.hire()
}

// hire starts a goroutine if pods are ready and none is on its way to them. Whoever takes a pod hires before its sync begins. So
// a ready pod never waits for the sync of another, and yet a burst of short syncs is served by few goroutines.
func (w *Workers) hire() {
	c := w.crew
	if c.coming || c.ready.first == nil || w.opts.parallel > 0 && c.size >= w.opts.parallel {
		return
	}
	c.coming = true
	c.size++
	c.syncs.Go(func() { w.work(c) })
}

// work is a goroutine: it syncs pods as long as there are some that are ready.
func (w *Workers) work(c *crew) {
	w.mu.Lock()
	c.coming = false
	for inc := c.ready.pop(); inc != nil; inc = c.ready.pop() {
		began := time.Now()
		todo := inc.begin(began)
		ctx, cancel := context.WithCancelCause(c.ctx)
		inc.cancel = cancel
		w.hire()
		w.mu.Unlock()

		w.opts.observer.syncStarted(inc.ref, todo.during)
		end, err := todo.carryOut(ctx, w.syncer)
		now := time.Now()
		w.opts.observer.syncEnded(inc.ref, todo.during, now.Sub(began), err)
		if err != nil && ctx.Err() == nil {
			c.log.Error(err, "sync failed", "pod", inc.ref, "state", todo.during)
		}
		cancel(nil)
		pace := w.opts.pace()

		w.mu.Lock()
		inc.cancel = nil
		from := inc.state
		w.step(inc, from, inc.end(todo.during, end, err, now, pace))
	}
	c.size--
	w.mu.Unlock()
}

// carryOut calls the Syncer.
func (c *call) carryOut(ctx context.Context, s Syncer) (end *podmill.Kill, err error) {
	switch {
	case c.during == Syncing:
		return s.SyncPod(ctx, c.pod)
	case c.during == Terminating && c.pod == nil:
		return nil, s.SyncTerminatingRuntimePod(ctx, c.seen)
	case c.during == Terminating:
		return nil, s.SyncTerminatingPod(ctx, c.pod, c.stop)
	default:
		return nil, s.SyncTerminatedPod(ctx, c.pod)
	}
}

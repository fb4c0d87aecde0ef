package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// stopPatience is how much longer than its grace period the next pod may take to stop when the agent ends.
const stopPatience = 30 * time.Second

// Run runs the agent until its context ends or a part of it fails, and returns when everything it started has ended. A run that was ended by
// its context returns nil, unless pods should have been stopped and could not be.
func (a *Agent) Run(parent context.Context) error {
	ctx, fail := context.WithCancelCause(parent)
	defer fail(nil)
	if a.state.meet(ctx); ctx.Err() != nil {
		return nil // nothing has begun
	}

	// The parts end in the reverse order of this, each when those after it have: nothing is left that has nobody to tell.
	events := start(ctx, fail, a.writeEvents)
	defer events.end()
	statuses := start(ctx, fail, a.statuses.Run)
	defer statuses.end()
	eyes := start(ctx, fail, a.eyes.Run)
	defer eyes.end()
	probes := start(ctx, fail, a.probes.Run)
	defer probes.end()
	workers := start(ctx, fail, a.workers.Run)
	defer workers.end()
	select {
	case <-a.eyes.Listed(): // what runs already is known before anything is started beside it
	case <-ctx.Done():
	}
	loop := start(ctx, fail, a.loop.Run, a.watchObjects, a.rotateLogs, a.retryResizes)
	<-ctx.Done()
	loop.end()

	if parent.Err() == nil {
		return context.Cause(ctx)
	}
	if a.opts.stopPods {
		return a.stopAll(context.WithoutCancel(ctx))
	}
	return nil
}

// writeEvents runs a recorder that has to be, such as one that writes to a file.
func (a *Agent) writeEvents(ctx context.Context) error {
	if r, ok := a.opts.events.(interface {
		Run(ctx context.Context) error
	}); ok {
		return r.Run(ctx)
	}
	return nil
}

// rotateLogs keeps logs to their size where the runtime plays along.
func (a *Agent) rotateLogs(ctx context.Context) error {
	if a.logs == nil {
		return nil
	}
	return a.logs.Run(ctx)
}

// stopAll stops and removes every pod, those that nobody has missed yet included. What goes wrong with one keeps no other from being stopped.
func (a *Agent) stopAll(ctx context.Context) error {
	unknown := a.findOrphans(ctx)
	for _, pod := range a.workers.Pods() {
		a.workers.Remove(pod.UID)
	}
	if err := a.awaitEnds(); err != nil {
		return errors.Join(unknown, err)
	}
	errs := []error{unknown}
	for _, c := range a.cleaners {
		errs = append(errs, c.Cleanup(ctx, func(types.UID) bool { return false }))
	}
	return errors.Join(errs...)
}

// awaitEnds waits until every pod has finished, or none does any more.
func (a *Agent) awaitEnds() error {
	patience := stopPatience
	for _, pod := range a.statuses.Pods() {
		if grace := pod.Spec.TerminationGracePeriodSeconds; grace != nil {
			patience = max(patience, stopPatience+time.Duration(*grace)*time.Second)
		}
	}
	for {
		left := a.workers.Pods()
		if len(left) == 0 {
			return nil
		}
		select {
		case <-a.finished:
		case <-time.After(patience): // since the last one has finished
			err := fmt.Errorf("%d pods are left, and none has stopped for %v; the first is %s, %s", len(left), patience, left[0].PodRef, left[0].State)
			if left[0].Err != nil {
				err = fmt.Errorf("%w: %w", err, left[0].Err)
			}
			return err
		}
	}
}

// findOrphans has the workers know of every pod that the runtime holds and this agent made. An agent that has just been started may not
// have come to that. A pod that cannot be inspected is named in the error: it may be this agent's.
func (a *Agent) findOrphans(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopPatience)
	defer cancel()
	var snap podmill.Snapshot
	if err := a.runtime.ListPods(ctx, &snap); err != nil {
		return fmt.Errorf("find the pods to stop: %w", err)
	}
	var errs []error
	looked := map[types.UID]bool{}
	for i := range snap.Items {
		uid := snap.Items[i].Pod.UID
		if looked[uid] || a.workers.Known(uid) {
			continue
		}
		looked[uid] = true
		seen, err := a.eyes.Observe(ctx, uid, false)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("find the pods to stop: pod %s: %w", snap.Items[i].Pod, err))
		case a.owns(seen):
			a.workers.Orphan(seen)
		}
	}
	return errors.Join(errs...)
}

// stage is a part of the agent that runs until it is told to end, which the end of the agent's own context does not do.
type stage struct {
	cancel context.CancelFunc
	parts  sync.WaitGroup
}

// start runs parts side by side. One that fails ends the agent.
func start(ctx context.Context, fail context.CancelCauseFunc, parts ...func(context.Context) error) *stage {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &stage{cancel: cancel}
	for _, run := range parts {
		s.parts.Go(func() {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				fail(err)
			}
		})
	}
	return s
}

// end ends the parts and waits for them.
func (s *stage) end() {
	s.cancel()
	s.parts.Wait()
}

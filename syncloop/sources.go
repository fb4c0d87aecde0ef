package syncloop

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"

	"github.com/podmill/podmill"
)

// delivery is an update on its way from a source to the loop.
type delivery struct {
	source int
	update podmill.PodUpdate
}

// follow runs a source, again and again if it fails, until ctx ends.
func (l *Loop) follow(ctx context.Context, source int) {
	deliver := func(u podmill.PodUpdate) {
		u.Pods = slices.Clone(u.Pods)
		select {
		case l.deliveries <- delivery{source, u}:
		case <-ctx.Done():
		}
	}
	name := l.sources[source].Name()
	for failures := 1; ; failures++ {
		began := time.Now()
		err := l.sources[source].Run(ctx, deliver)
		if ctx.Err() != nil || err == nil {
			return
		}
		if time.Since(began) > time.Minute {
			failures = 1
		}
		wait := backoff(failures)
		logr.FromContextOrDiscard(ctx).Error(fmt.Errorf("follow source %s: %w", name, err), "source failed, running it again", "wait", wait)
		l.opts.observer.sourceFailed(name, err, wait)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// merge takes in what a source has delivered, and tells the workers what that changes. What is wanted is published first, so
// that a pod is never without anybody who stands up for it.
func (l *Loop) merge(ctx context.Context, d delivery) {
	log := logr.FromContextOrDiscard(ctx).WithValues("source", l.merged[d.source].source)
	out := l.merged.apply(d.source, d.update)
	l.publish(out.changes)
	if out.invalid > 0 {
		log.Error(nil, "source delivered pods without a UID, ignoring them", "pods", out.invalid)
	}
	for _, c := range out.conflicts {
		log.Error(nil, "two sources want one pod, the first registered has it", "pod", podmill.RefOf(c.pod), "kept", c.kept, "ignored", c.ignored)
		l.opts.observer.conflict(podmill.RefOf(c.pod), c.kept, c.ignored)
	}
	changed := 0
	for _, c := range out.changes {
		switch {
		case c.same:
			continue
		case c.pod == nil:
			delete(l.unnamed, c.uid)
			l.workers.Remove(c.uid)
		default:
			l.start(ctx, c.pod)
		}
		changed++
	}
	l.opts.observer.update(l.merged[d.source].source, d.update.Op, len(d.update.Pods), changed)
}

// publish lets others see what the sources want.
func (l *Loop) publish(changes []change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.synced = l.merged.synced("")
	for _, c := range changes {
		if c.pod == nil {
			delete(l.pods, c.uid)
		} else {
			l.pods[c.uid] = c.pod
		}
	}
}

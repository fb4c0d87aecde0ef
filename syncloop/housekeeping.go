package syncloop

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// Cleaner removes from a node what pods have left behind there.
type Cleaner interface {
	// Cleanup removes what belongs to a pod for which keep returns false. It asks keep for each pod, right before it touches anything of it;
	// keep may be called concurrently and until Cleanup returns. A pod may come to be wanted after the answer: what must not
	// be removed under it the cleaner itself holds together, as a mutex of the pod does. It is called when a
	// pod has gone, again where it failed, and now and then in any case; never concurrently.
	Cleanup(ctx context.Context, keep func(types.UID) bool) error
}

// housekeep hands over orphans, and returns a round of cleaning that is due, nil if none is.
func (l *Loop) housekeep(ctx context.Context) func() {
	if l.opts.runtime == nil {
		return nil
	}
	held, ok := l.opts.runtime()
	if !ok {
		return nil
	}
	l.startWaiting(ctx)
	for _, pod := range held {
		if !l.workers.Known(pod.UID) {
			l.orphan(ctx, pod)
		} else if l.opts.own(pod) {
			l.workers.Leftover(pod.UID)
		}
	}
	if len(l.opts.cleaners) == 0 {
		return nil
	}
	keep := l.keeper(held)
	if l.gone(held, keep) || time.Since(l.cleaned) >= l.opts.idle {
		l.due.Store(true)
	}
	if !l.merged.synced("") || !l.due.Load() || !l.cleaning.CompareAndSwap(false, true) {
		return nil
	}
	l.due.Store(false)
	l.cleaned = time.Now()
	return func() {
		defer l.cleaning.Store(false)
		if !l.clean(ctx, keep) {
			l.due.Store(true)
		}
	}
}

// gone reports whether a pod of the last housekeeping is nobody's any more, and remembers those of this one.
func (l *Loop) gone(held []*podmill.RuntimePod, keep func(types.UID) bool) bool {
	before := len(l.kept)
	maps.DeleteFunc(l.kept, func(uid types.UID, _ struct{}) bool { return !keep(uid) })
	gone := len(l.kept) < before
	for _, pod := range held {
		l.kept[pod.UID] = struct{}{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for uid := range l.pods {
		l.kept[uid] = struct{}{}
	}
	return gone
}

// keeper returns who says which pods the cleaners keep.
func (l *Loop) keeper(held []*podmill.RuntimePod) func(types.UID) bool {
	inRuntime := make(map[types.UID]bool, len(held))
	for _, pod := range held {
		inRuntime[pod.UID] = true
	}
	return func(uid types.UID) bool {
		if inRuntime[uid] {
			return true
		}
		_, wanted := l.Pod(uid)
		return wanted || l.workers.Known(uid)
	}
}

// clean is one round of cleaning, and reports whether nothing stayed behind. An error is logged when it is new.
func (l *Loop) clean(ctx context.Context, keep func(types.UID) bool) bool {
	began := time.Now()
	var errs []error
	for _, c := range l.opts.cleaners {
		if err := c.Cleanup(ctx, keep); err != nil {
			errs = append(errs, fmt.Errorf("clean up by %T: %w", c, err))
		}
	}
	if ctx.Err() != nil {
		return false
	}
	err := errors.Join(errs...)
	l.opts.observer.cleanup(time.Since(began), err)
	said := ""
	if err != nil {
		said = err.Error()
	}
	if said != "" && said != l.complaint {
		logr.FromContextOrDiscard(ctx).Error(err, "housekeeping left something behind")
	}
	l.complaint = said
	return err == nil
}

// sourceOf returns the name of the source that a pod of the runtime came from, empty where the runtime does not tell.
func sourceOf(pod *podmill.RuntimePod) string {
	for i := range pod.Sandboxes {
		if source := pod.Sandboxes[i].Annotations[podmill.AnnotationConfigSource]; source != "" {
			return source
		}
	}
	for i := range pod.Containers {
		if source := pod.Containers[i].Annotations[podmill.AnnotationConfigSource]; source != "" {
			return source
		}
	}
	return ""
}

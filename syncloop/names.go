package syncloop

import (
	"context"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/lifecycle"
)

// start tells the workers of a pod that is wanted, or wanted otherwise. A static pod that they do not know waits until it is sure that its name is free, or
// that they know whom it has to wait for: after a restart of the agent the runtime may hold a former version of it, under another UID, that nothing
// wants any more. It waits for what the runtime says of that one, and for no other pod.
func (l *Loop) start(ctx context.Context, pod *corev1.Pod) {
	if l.workers.Known(pod.UID) || l.nameIsClear(ctx, pod) {
		delete(l.unnamed, pod.UID)
		l.workers.Update(pod)
		return
	}
	l.unnamed[pod.UID] = pod
}

// startWaiting starts the static pods of whose names more is known now.
func (l *Loop) startWaiting(ctx context.Context) {
	for _, pod := range l.unnamed {
		l.start(ctx, pod)
	}
}

// nameIsClear reports that the workers know every pod that a static pod has to wait for. It hands them those that the runtime holds and nothing wants.
func (l *Loop) nameIsClear(ctx context.Context, pod *corev1.Pod) bool {
	if l.opts.runtime == nil || !lifecycle.Static(pod.Annotations) {
		return true
	}
	held, listed := l.opts.runtime()
	if !listed {
		return false
	}
	free := true
	for _, former := range held {
		if former.Namespace != pod.Namespace || former.Name != pod.Name || former.UID == pod.UID || l.workers.Known(former.UID) {
			continue
		}
		if !inspected(former) {
			free = false // nobody knows yet whose it is
			continue
		}
		l.orphan(ctx, former)
	}
	return free
}

// orphan hands over a pod that the runtime holds and the workers do not know, if it is this agent's and nothing can want it.
func (l *Loop) orphan(ctx context.Context, pod *podmill.RuntimePod) {
	if wanted, _ := l.merged.find(pod.UID); wanted != nil || !l.opts.own(pod) || !l.merged.synced(sourceOf(pod)) {
		return
	}
	logr.FromContextOrDiscard(ctx).Info("nothing wants a pod that the runtime holds, tearing it down", "pod", pod.PodRef)
	l.workers.Orphan(pod)
	l.opts.observer.orphan(pod.PodRef)
}

// inspected reports that more is known of a pod than what a listing says, which has no times.
func inspected(pod *podmill.RuntimePod) bool {
	return slices.ContainsFunc(pod.Sandboxes, func(s podmill.Sandbox) bool { return !s.CreatedAt.IsZero() }) ||
		slices.ContainsFunc(pod.Containers, func(c podmill.Container) bool { return !c.CreatedAt.IsZero() })
}

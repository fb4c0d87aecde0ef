package checkpoint

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// Source returns a source whose pods are kept, by the source's name.
func (c *Checkpoint) Source(from podmill.PodSource) podmill.PodSource {
	return &source{PodSource: from, checkpoint: c}
}

type source struct {
	podmill.PodSource
	checkpoint *Checkpoint
}

// Run delivers what the source delivers and, if that is silent or fails before it has told its pods, those that are kept.
func (s *source) Run(ctx context.Context, deliver func(podmill.PodUpdate)) error {
	writing, stop := context.WithCancel(ctx)
	var writer sync.WaitGroup
	writer.Go(func() { s.checkpoint.write(writing) })
	defer writer.Wait()
	defer stop()

	updates, ended := make(chan podmill.PodUpdate), make(chan error, 1)
	go func() {
		ended <- s.PodSource.Run(ctx, func(u podmill.PodUpdate) {
			select {
			case updates <- u:
			case <-ctx.Done():
			}
		})
	}()
	synced := false
	silent := time.NewTimer(s.checkpoint.opts.patience)
	defer silent.Stop()
	for {
		select {
		case u := <-updates:
			s.take(ctx, u, synced, deliver)
			synced = synced || u.Op == podmill.ReplacePods
		case <-silent.C:
			if !synced {
				s.recall(ctx, deliver)
			}
		case err := <-ended:
			if err != nil && !synced && ctx.Err() == nil {
				s.recall(ctx, deliver)
			}
			return err
		}
	}
}

// take keeps what the source tells, and passes it on. Until the source is synced the agent may not know the pods' statuses, so that they come with what is kept.
func (s *source) take(ctx context.Context, u podmill.PodUpdate, synced bool, deliver func(podmill.PodUpdate)) {
	if err := s.checkpoint.keep(s.Name(), u); err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "pods are not kept", "source", s.Name())
	}
	if !synced && u.Op != podmill.DeletePods {
		u.Pods = s.checkpoint.withStatuses(u.Pods)
	}
	deliver(u)
}

// recall delivers the source's pods that are kept.
func (s *source) recall(ctx context.Context, deliver func(podmill.PodUpdate)) {
	pods := s.checkpoint.withStatuses(s.checkpoint.podsOf(s.Name()))
	logr.FromContextOrDiscard(ctx).Info("the source does not answer, going on with the pods that it asked for last", "source", s.Name(), "pods", len(pods))
	s.checkpoint.opts.observer.recalled(s.Name(), len(pods))
	if len(pods) > 0 {
		deliver(podmill.PodUpdate{Op: podmill.UpsertPods, Pods: pods})
	}
}

func (c *Checkpoint) podsOf(source string) []*corev1.Pod {
	c.mu.Lock()
	defer c.mu.Unlock()
	var pods []*corev1.Pod
	for _, k := range c.pods {
		if k.source == source {
			pods = append(pods, k.pod)
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return pods
}

// withStatuses returns pods with the newest statuses that are known of them.
func (c *Checkpoint) withStatuses(pods []*corev1.Pod) []*corev1.Pod {
	out := slices.Clone(pods)
	for i, pod := range pods {
		var status corev1.PodStatus
		if pod == nil || !c.journal.get(statusKey(pod.UID), &status) || behind(&status, &pod.Status) {
			continue
		}
		recalled := *pod // what is in it is read-only
		recalled.Status = status
		recalled.Status.Conditions = conditions(pod, status.Conditions)
		out[i] = &recalled
	}
	return out
}

// behind reports that a source knows more than what is kept: that the pod is over, or of more restarts. What is told to an API is not always on disk
// before a loss of power, and another agent may have run in between.
func behind(kept, told *corev1.PodStatus) bool {
	if over(told) || over(kept) {
		return !over(kept)
	}
	restarts := map[string]int32{}
	for _, list := range [][]corev1.ContainerStatus{kept.InitContainerStatuses, kept.ContainerStatuses} {
		for i := range list {
			restarts[list[i].Name] = list[i].RestartCount
		}
	}
	for _, list := range [][]corev1.ContainerStatus{told.InitContainerStatuses, told.ContainerStatuses} {
		for i := range list {
			if list[i].RestartCount > restarts[list[i].Name] {
				return true
			}
		}
	}
	return false
}

func over(status *corev1.PodStatus) bool {
	return status.Phase == corev1.PodSucceeded || status.Phase == corev1.PodFailed
}

// conditions returns a pod's own conditions, and those of the pod's source that others set.
func conditions(pod *corev1.Pod, own []corev1.PodCondition) []corev1.PodCondition {
	others := func(kind corev1.PodConditionType) bool {
		return slices.ContainsFunc(pod.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool { return g.ConditionType == kind })
	}
	is := func(kind corev1.PodConditionType) func(corev1.PodCondition) bool {
		return func(c corev1.PodCondition) bool { return c.Type == kind }
	}
	all := slices.DeleteFunc(own, func(c corev1.PodCondition) bool { return others(c.Type) })
	for _, c := range pod.Status.Conditions {
		if others(c.Type) || !slices.ContainsFunc(all, is(c.Type)) {
			all = append(all, c)
		}
	}
	return all
}

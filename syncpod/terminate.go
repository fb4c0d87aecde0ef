package syncpod

import (
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podmill/podmill"
)

// SyncTerminatingPod stops a pod: its containers within the grace that is left until t's deadline, then its sandboxes. It returns nil when a look
// that began after the last stop has shown that nothing runs any more, and only then reports the pod as stopped.
//
// It is a reconcile and not a shot: after an error, a restart of the agent, or a call that was cancelled because the deadline came nearer,
// the next call goes on where this one was. The deadline is kept in the pod's directory.
func (s *Syncer) SyncTerminatingPod(ctx context.Context, pod *corev1.Pod, t podmill.Termination) error {
	keeper, err := s.keeper(pod.UID)
	logFailure(ctx, pod, "nothing of the pod's hooks is known", err)
	err = s.stop(ctx, pod, t, func(seen *podmill.RuntimePod, t podmill.Termination, stopped bool) error {
		return s.report(ctx, pod, seen, podmill.Progress{
			Health: s.health(pod, seen, keeper.hooks(), true), Termination: &t, Stopped: stopped, Resize: keeper.progress(&sizing{}),
		})
	})
	if err != nil {
		return s.tellFailure(ctx, pod, eventFailedKillPod, "error killing pod: ", fmt.Errorf("stop pod %s: %w", podmill.RefOf(pod), err))
	}
	return nil
}

// SyncTerminatingRuntimePod stops a pod of which nothing is known but what the runtime holds, and removes all that there is of it. Its grace
// period is that in its containers' annotations, and its deadline the one in its directory, if the pod was ending already.
func (s *Syncer) SyncTerminatingRuntimePod(ctx context.Context, seen *podmill.RuntimePod) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: seen.UID, Namespace: seen.Namespace, Name: seen.Name}}
	if err := s.stopSeen(ctx, pod, seen); err != nil {
		return s.tellFailure(ctx, pod, eventFailedKillPod, "error killing pod: ", fmt.Errorf("stop orphaned pod %s: %w", seen.PodRef, err))
	}
	if _, err := s.takeAway(ctx, pod); err != nil {
		return fmt.Errorf("remove orphaned pod %s: %w", seen.PodRef, err)
	}
	return nil
}

// stopSeen stops what was seen of a pod, and tells nobody how it stands.
func (s *Syncer) stopSeen(ctx context.Context, pod *corev1.Pod, seen *podmill.RuntimePod) error {
	grace := annotatedGrace(seen)
	t := podmill.Termination{Deadline: time.Now().Add(time.Duration(grace) * time.Second), GracePeriodSeconds: grace}
	return s.stop(ctx, pod, t, func(*podmill.RuntimePod, podmill.Termination, bool) error { return nil })
}

// stop goes round from look to stop until nothing runs. What is known of a pod is good enough to begin with: what it does not show, the next look does. Only that nothing
// runs is not taken from it.
func (s *Syncer) stop(
	ctx context.Context, pod *corev1.Pod, t podmill.Termination,
	report func(seen *podmill.RuntimePod, t podmill.Termination, stopped bool) error,
) error {
	keeper, err := s.keeper(pod.UID)
	logFailure(ctx, pod, "nothing of the pod's end is kept", err)
	hooks := s.hooksOf(ctx, pod, keeper)
	defer hooks.cut()
	limit := 4 + 2*(len(pod.Spec.InitContainers)+len(pod.Spec.Containers))
	stopped := map[string]bool{}
	for round, kept := 0, false; ; round++ {
		fresh := round > 0
		seen, err := s.Cache.Observe(ctx, pod.UID, fresh)
		if err != nil {
			return fmt.Errorf("observe: %w", err)
		}
		if !kept && !seen.Empty() {
			t, err = keeper.terminate(t)
			logFailure(ctx, pod, "the deadline is not kept; after a restart of the agent the pod has its whole grace again", err)
			kept = true
		}
		a := Plan(Input{Pod: pod, Seen: seen, Termination: &t, Stopped: stopped, Hooks: hooks.states(nil)}, time.Now())
		if a.Finished && !fresh {
			continue
		}
		if a.Finished {
			if err := s.Sandboxes.Stop(ctx, seen); err != nil {
				return err
			}
			return report(seen, t, true)
		}
		if err := report(seen, t, false); err != nil {
			return fmt.Errorf("report: %w", err)
		}
		if round == limit {
			return fmt.Errorf("containers do not stop, there is still to do: %s", a.String())
		}
		s.observer.planned(podmill.RefOf(pod), &a)
		if err := s.stopSome(ctx, pod, hooks, seen, &a, func(seen *podmill.RuntimePod) error { return report(seen, t, false) }); err != nil {
			return err
		}
		for _, k := range a.Kill {
			stopped[k.ID] = true
		}
	}
}

// stopSome begins preStop hooks and stops containers, and meanwhile reports what becomes of the pod: some end before others, and one that still
// works off what it has may cease to be ready.
func (s *Syncer) stopSome(
	ctx context.Context, pod *corev1.Pod, hooks *beside, seen *podmill.RuntimePod, a *Actions,
	report func(seen *podmill.RuntimePod) error,
) error {
	for i := range a.PreStop {
		hooks.preStop(seen, &a.PreStop[i])
	}
	stopped := make(chan error, 1)
	go func() {
		_, err := s.kill(ctx, pod, hooks, a.Kill)
		stopped <- err
	}()
	ticker := time.NewTicker(hookLook)
	defer ticker.Stop()
	for {
		select {
		case err := <-stopped:
			return err
		case <-ticker.C:
		}
		if seen, err := s.Cache.Observe(ctx, pod.UID, false); err == nil {
			logFailure(ctx, pod, "the status is not up to date", report(seen))
		}
	}
}

// annotatedGrace returns the grace period, in seconds, that a pod's containers were created with: what a deletion asked for, or else the pod's own.
func annotatedGrace(seen *podmill.RuntimePod) int64 {
	for _, key := range []string{podmill.AnnotationPodDeletionGracePeriod, podmill.AnnotationPodTerminationGracePeriod} {
		for i := range seen.Containers {
			if n, err := strconv.ParseInt(seen.Containers[i].Annotations[key], 10, 32); err == nil {
				return max(0, n)
			}
		}
	}
	return corev1.DefaultTerminationGracePeriodSeconds
}

package syncpod

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// SyncTerminatedPod removes all that there is of a pod that has stopped: containers and sandboxes, then volumes, cgroup and directories, in this order, for
// each could still be needed by the one before. Logs stay for people to read until [Syncer.Cleanup] finds that nobody wants the pod. It may
// be repeated, and after an error goes on with what is left. The last report says that nothing is.
func (s *Syncer) SyncTerminatedPod(ctx context.Context, pod *corev1.Pod) error {
	seen, err := s.takeAway(ctx, pod)
	if err != nil {
		return fmt.Errorf("remove pod %s: %w", podmill.RefOf(pod), err)
	}
	// Of the termination there is nothing new to tell; what was seen before the removal is the last that is known of the containers.
	last := podmill.Progress{Termination: &podmill.Termination{}, Stopped: true, Removed: true}
	if err := s.report(ctx, pod, seen, last); err != nil {
		return fmt.Errorf("report the end of pod %s: %w", podmill.RefOf(pod), err)
	}
	return nil
}

func (s *Syncer) takeAway(ctx context.Context, pod *corev1.Pod) (*podmill.RuntimePod, error) {
	seen, err := s.Cache.Observe(ctx, pod.UID, true)
	if err != nil {
		return nil, fmt.Errorf("observe: %w", err)
	}
	if anyOf(seen.Containers, running) {
		// The runtime did not show it when the pod was stopped. There is no way back to that, so it is done here, in what is left of the grace.
		if err := s.stopSeen(ctx, pod, seen); err != nil {
			return nil, fmt.Errorf("stop what still runs: %w", err)
		}
		if seen, err = s.Cache.Observe(ctx, pod.UID, true); err != nil {
			return nil, fmt.Errorf("observe: %w", err)
		}
	}
	if err := s.removeContainers(ctx, pod, seen); err != nil {
		return nil, err
	}
	if s.volumes != nil {
		if err := s.volumes.UnmountVolumes(ctx, pod.UID); err != nil {
			return nil, err
		}
	}
	if s.cgroups != nil {
		if err := s.cgroups.RemoveCgroup(ctx, pod.UID); err != nil {
			return nil, err
		}
	}
	if err := s.removeDirectory(pod.UID); err != nil {
		return nil, err
	}
	if err := s.confirmGone(ctx, pod.UID, seen); err != nil {
		return nil, err
	}
	s.forget(pod.UID)
	return seen, nil
}

// confirmGone looks once more where something was removed. So everybody who asks knows right away that the pod is gone, and nobody comes to
// clean up what only was there; and that it is gone is a thing seen, and not a thing asked for.
func (s *Syncer) confirmGone(ctx context.Context, uid types.UID, before *podmill.RuntimePod) error {
	if before.Empty() {
		return nil
	}
	seen, err := s.Cache.Observe(ctx, uid, true)
	switch {
	case err != nil:
		return fmt.Errorf("observe: %w", err)
	case !seen.Empty():
		return errors.New("the runtime still holds something of it")
	}
	return nil
}

func running(c *podmill.Container) bool { return c.State == podmill.StateRunning }

// removeContainers removes a pod's containers and sandboxes, and the links to their logs. It refuses where a container still runs: whoever
// thinks that the pod has stopped is wrong, and its volumes must stay.
func (s *Syncer) removeContainers(ctx context.Context, pod *corev1.Pod, seen *podmill.RuntimePod) error {
	for i := range seen.Containers {
		if c := &seen.Containers[i]; running(c) {
			return fmt.Errorf("container %s still runs", c.Name)
		}
	}
	for i := range seen.Containers {
		c := &seen.Containers[i]
		if anyOf(seen.Sandboxes, func(b *podmill.Sandbox) bool { return b.ID == c.SandboxID }) {
			continue // it goes with its sandbox
		}
		if err := done(s.Runtime.RemoveContainer(ctx, c.ID)); err != nil {
			return fmt.Errorf("remove container %s: %w", c.Name, err)
		}
	}
	if err := s.Sandboxes.Remove(ctx, seen); err != nil {
		return err
	}
	for i := range seen.Containers {
		logFailure(ctx, pod, "the link to a log stays", s.unlinkLog(pod, seen.Containers[i].Name, seen.Containers[i].ID))
	}
	return nil
}

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/podmill/podmill"
)

// Collect removes the ghosts among the sandboxes of these pods: what earlier attempts, failed ones too, have left behind. A pod's newest
// sandbox stays, whether or not anyone wants the pod; that is for its worker to end. The error names each that could not be removed.
func (m *Manager) Collect(ctx context.Context, pods []*podmill.RuntimePod) error {
	var errs []error
	for _, pod := range pods {
		for _, id := range ghosts(pod, time.Now(), m.opts.ghostAge) {
			err := m.runtime.RemoveSandbox(ctx, id)
			if errors.Is(err, podmill.ErrNotFound) {
				err = nil
			}
			m.opts.observer.collected(pod.PodRef, id, err)
			if err != nil {
				errs = append(errs, fmt.Errorf("remove dead sandbox %s of pod %s: %w", id, pod.PodRef, err))
			}
		}
	}
	return errors.Join(errs...)
}

// ghosts returns the sandboxes of a pod that are of no use to anyone: dead, replaced by a newer attempt, without containers, whose logs
// and exit codes someone may yet ask for, and not so young that the call that makes them may still be under way.
func ghosts(pod *podmill.RuntimePod, now time.Time, age time.Duration) (ids []string) {
	var newest uint32
	for _, s := range pod.Sandboxes {
		newest = max(newest, s.Attempt)
	}
	for _, s := range pod.Sandboxes {
		occupied := slices.ContainsFunc(pod.Containers, func(c podmill.Container) bool { return c.SandboxID == s.ID })
		if !s.Ready && s.Attempt < newest && !occupied && now.Sub(s.CreatedAt) >= age {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

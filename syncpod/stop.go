package syncpod

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// kill stops containers side by side, each when its preStop hook is over, and returns the names of those of which it failed.
func (s *Syncer) kill(ctx context.Context, pod *corev1.Pod, hooks *beside, kills []Kill) (unkilled map[string]bool, err error) {
	errs := make([]error, len(kills))
	each(len(kills), func(i int) {
		k := &kills[i]
		if k.Remove {
			errs[i] = s.step(pod, "remove", k.Name, func() error { return done(s.Runtime.RemoveContainer(ctx, k.ID)) })
			return
		}
		s.event(pod, k.Name, corev1.EventTypeNormal, eventKilling, k.Why)
		errs[i] = s.step(pod, "kill", k.Name, func() error {
			begun := time.Now()
			if err := hooks.await(ctx, k.ID); err != nil {
				return err
			}
			return done(s.Runtime.StopContainer(ctx, k.ID, left(k.Grace, time.Since(begun))))
		})
	})
	unkilled = map[string]bool{}
	for i, err := range errs {
		if err != nil {
			unkilled[kills[i].Name] = true
			errs[i] = fmt.Errorf("stop container %s: %w", kills[i].Name, err)
		}
	}
	return unkilled, errors.Join(errs...)
}

// left is what the preStop hook has left of a grace.
func left(grace, taken time.Duration) time.Duration {
	if grace <= 0 {
		return 0
	}
	return max(minimumGrace, grace-taken)
}

// removeDead removes dead instances with their logs.
func (s *Syncer) removeDead(ctx context.Context, pod *corev1.Pod, dead []Remove) error {
	errs := make([]error, len(dead))
	each(len(dead), func(i int) {
		r := &dead[i]
		err := s.step(pod, "remove", r.Name, func() error { return done(s.Runtime.RemoveContainer(ctx, r.ID)) })
		if err != nil {
			errs[i] = fmt.Errorf("remove container %s: %w", r.Name, err)
			return
		}
		logFailure(ctx, pod, "logs of a container that was removed stay", s.removeLogs(pod, r))
	})
	return errors.Join(errs...)
}

// done takes "not there" for what it is: the end that was asked for.
func done(err error) error {
	if errors.Is(err, podmill.ErrNotFound) {
		return nil
	}
	return err
}

// each does n things side by side.
func each(n int, do func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(i) })
	}
	all.Wait()
}

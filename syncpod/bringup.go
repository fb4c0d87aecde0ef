package syncpod

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// A pod comes up in eight steps. The first four prepare it and go side by side: its cgroup (1), its directories (2) and then
// its volumes (3), the credentials for its images (4). Then come the sandbox (5), and in it either the next init container (6) or the
// app containers side by side (7). The images of these come beside the sandbox, which does not need them. Steps that need nothing done cost
// nothing: the restart of a container is the same eight steps. The status (8) is made by the look that follows.

// preparation is what the first four steps found out.
type preparation struct {
	spec    *podmill.SandboxSpec // of the sandbox that there is, or will be
	volumes map[string]podmill.Volume
	auths   []podmill.ImageAuth
}

func (s *Syncer) prepare(ctx context.Context, pod *corev1.Pod, now *situation) (*preparation, error) {
	spec, err := s.sandboxSpec(ctx, pod, now)
	if err != nil {
		return nil, err
	}
	p := &preparation{spec: spec}
	all, ctx := errgroup.WithContext(ctx)
	if now.RunSandbox != nil && !pod.Spec.HostNetwork && s.networkReady != nil {
		all.Go(func() error {
			return s.tellFailure(ctx, pod, eventNetworkNotReady, "network is not ready: ", s.networkReady(ctx))
		})
	}
	all.Go(func() (err error) { // 1
		if s.cgroups == nil {
			return nil
		}
		err = s.step(pod, "cgroup", "", func() (err error) {
			spec.CgroupParent, err = s.cgroups.EnsureCgroup(ctx, now.roomy)
			return err
		})
		return s.tellFailure(ctx, pod, eventFailedCgroup, "unable to ensure pod container exists: ", err)
	})
	all.Go(func() (err error) {
		err = s.step(pod, "directories", "", func() error { return s.makeDirectories(pod) }) // 2
		if err != nil {
			return s.tellFailure(ctx, pod, eventFailedDirectories, "error making pod data directories: ", err)
		}
		p.volumes, err = s.mountVolumes(ctx, pod) // 3
		return err
	})
	all.Go(func() error { // 4
		err := s.step(pod, "pull secrets", "", func() (err error) {
			p.auths, err = s.Images.PullSecrets(ctx, pod)
			return err
		})
		logFailure(ctx, pod, "some credentials for images are missing", err) // a pull may go well without
		return nil
	})
	return p, all.Wait()
}

// sandboxSpec returns the spec of the sandbox that is there or is to be run, but for its cgroup. It comes first, for there is no use in
// preparing a pod that can have none.
func (s *Syncer) sandboxSpec(ctx context.Context, pod *corev1.Pod, now *situation) (*podmill.SandboxSpec, error) {
	var attempt uint32
	if now.RunSandbox != nil {
		attempt = now.RunSandbox.Attempt
	} else {
		attempt = now.sandbox.Attempt
	}
	spec, err := s.Sandboxes.Spec(pod, attempt)
	if err != nil {
		return nil, err
	}
	if s.users != nil && pod.Spec.HostUsers != nil && !*pod.Spec.HostUsers {
		if spec.IDMappings, err = s.users.Allot(pod.UID); err != nil {
			err = &podmill.ReasonError{Reason: reasonConfigError, Message: "spec.hostUsers: " + err.Error(), Err: err}
			return nil, s.tellFailure(ctx, pod, eventFailedSandbox, "Failed to create pod sandbox: ", err)
		}
	}
	spec.LogDirectory, err = s.logDir(pod)
	return spec, s.tellFailure(ctx, pod, eventFailedSandbox, "Failed to create pod sandbox: ", err)
}

// mountVolumes makes a pod's volumes ready, and brings those of a running pod up to date.
func (s *Syncer) mountVolumes(ctx context.Context, pod *corev1.Pod) (volumes map[string]podmill.Volume, err error) {
	if s.volumes == nil {
		return nil, nil
	}
	err = s.step(pod, "volumes", "", func() (err error) {
		volumes, err = s.volumes.MountVolumes(ctx, pod)
		return err
	})
	return volumes, s.tellFailure(ctx, pod, eventFailedMount, "", err)
}

// bringUp makes the last four steps. What fails for one container stops no other. Without a sandbox there is nothing to tell of the
// containers, and a pull that is under way is called off, so that the next try does not wait for it. From then on images wait for the sandbox: one that
// fails again and again has none of them asked for.
func (s *Syncer) bringUp(
	ctx context.Context, pod *corev1.Pod, m *memory, hooks *beside, now *situation, p *preparation, unkilled map[string]bool,
) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	u := &bringingUp{Syncer: s, pod: pod, seen: now.seen, hooks: hooks, preparation: p, patient: m.homeless, housed: make(chan struct{})}
	outcomes := make([]outcome, len(now.Start))
	var all sync.WaitGroup
	for i := range now.Start { // 6 or 7
		if !unkilled[now.Start[i].Container.Name] {
			all.Go(func() { outcomes[i] = u.start(ctx, &now.Start[i]) })
		}
	}
	err := u.house(ctx, now) // 5
	if err != nil {
		cancel()
	}
	close(u.housed)
	all.Wait()
	m.homeless = err != nil
	if err != nil {
		return err
	}
	errs := make([]error, len(outcomes))
	for i, o := range outcomes {
		errs[i] = m.conclude(&now.Start[i], u.sandbox.ID, o)
	}
	return errors.Join(errs...)
}

// house sees to the sandbox to start containers in, and to what they are told of its addresses.
func (u *bringingUp) house(ctx context.Context, now *situation) (err error) {
	u.sandbox = now.sandbox
	if now.RunSandbox != nil {
		err = u.step(u.pod, "sandbox", "", func() (err error) {
			u.sandbox, err = u.Sandboxes.Run(ctx, u.spec)
			return err
		})
		if err != nil {
			return err
		}
	}
	u.hosts, err = u.writeHosts(u.pod, u.spec, u.sandbox.IPs)
	return u.tellFailure(ctx, u.pod, eventFailedDirectories, "error writing /etc/hosts: ", err)
}

// outcome is what came of starting a container.
type outcome struct {
	tried   bool // the runtime was asked to start it
	waiting *corev1.ContainerStateWaiting
	until   time.Time // when to try again, where that is known
	err     error
}

// blame remembers what the spec of a pod has that keeps all its containers from starting.
func (m *memory) blame(starts []Start, err error) {
	var known *podmill.ReasonError
	if !errors.As(err, &known) {
		return
	}
	for i := range starts {
		m.failed[starts[i].Container.Name] = corev1.ContainerStateWaiting{Reason: known.Reason, Message: known.Message}
	}
}

// conclude remembers what came of starting a container.
func (m *memory) conclude(start *Start, sandboxID string, o outcome) error {
	name := start.Container.Name
	if o.tried {
		m.backoff[BackoffKey(start.Container)] = start.Backoff
	}
	delete(m.held, BackoffKey(start.Container))
	switch {
	case !o.until.IsZero():
		m.held[BackoffKey(start.Container)] = Held{Until: o.until, Waiting: *o.waiting}
		m.failed[name] = *o.waiting // while the next pull is under way, too
	case o.waiting != nil:
		m.failed[name] = *o.waiting
	case o.err == nil && o.tried:
		delete(m.failed, name)
		m.started(start, sandboxID)
	}
	if o.err != nil {
		return fmt.Errorf("container %s: %w", name, o.err)
	}
	return nil
}

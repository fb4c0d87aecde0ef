package syncpod

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// SyncPod makes what the runtime holds of a pod into what its spec wants: it looks, plans, reports, acts, and looks again until nothing is
// left to do. It does not wait for containers to end; whoever sees that syncs again. It does wait for postStart
// hooks, and while they run it sees to the rest of the pod. An end that is not nil says that the pod has to be terminated: its
// work is done by itself or, with the reason DeadlineExceeded, it has been active for as long as it may.
//
// An error means that not all could be done, and names each thing; what could be done beside it was. Where ctx ends, nothing new is begun: no container is
// created or started after that.
func (s *Syncer) SyncPod(ctx context.Context, pod *corev1.Pod) (end *podmill.Kill, err error) {
	m, err := s.remember(pod)
	if err != nil {
		err = s.tellFailure(ctx, pod, eventFailedDirectories, "error making pod data directories: ", err)
		return nil, fmt.Errorf("sync pod %s: %w", podmill.RefOf(pod), err)
	}
	if m.end != nil {
		return m.end, nil
	}
	ctx, cancel := untilDeadline(ctx, pod, m.active)
	defer cancel()
	hooks := s.hooksOf(ctx, pod, m.keeper)
	defer hooks.cut()
	given, err := s.size(ctx, pod, m)
	for given != nil {
		end, err = s.settle(ctx, given, m, hooks)
		if end != nil || !hooks.wait() {
			break
		}
	}
	switch {
	case end == nil && errors.Is(context.Cause(ctx), errOutOfTime):
		end = outOfTime()
	case err != nil:
		return nil, fmt.Errorf("sync pod %s: %w", podmill.RefOf(pod), err)
	}
	if end != nil && end.Reason != "" {
		s.event(pod, "", corev1.EventTypeNormal, end.Reason, end.Message)
	}
	return end, nil
}

// settle goes round from look to action until the pod has all it wants. After a failure there is one more look, to report how things stand.
func (s *Syncer) settle(ctx context.Context, pod *corev1.Pod, m *memory, hooks *beside) (end *podmill.Kill, err error) {
	// A container can be started twice before its back-off makes it wait, and a sandbox once; a restart of all takes four rounds more. A runtime with which that does not end
	// is lying, or broken, and has to be left alone for a while.
	limit := 8 + 2*(len(pod.Spec.InitContainers)+len(pod.Spec.Containers)+len(pod.Spec.EphemeralContainers))
	var failed error
	for round := 0; ; round++ {
		now, err := s.look(ctx, pod, m, hooks)
		if err != nil {
			return nil, errors.Join(failed, err)
		}
		switch {
		case failed != nil:
			return nil, failed
		case now.End != nil:
			return now.End, nil
		case now.Idle() && !now.refused && (round == 0 || m.isStale(time.Now())):
			volumes, err := s.mountVolumes(ctx, pod)
			if err == nil {
				m.mounted(volumes)
				s.wakeAt(pod.UID, m, now.Until)
			}
			return nil, err
		case now.Idle():
			return nil, nil
		case round == limit:
			return nil, fmt.Errorf("the pod does not settle, there is still to do: %s", now.String())
		}
		s.observer.planned(podmill.RefOf(pod), &now.Actions)
		failed = s.act(ctx, pod, m, hooks, now)
	}
}

// situation is what is there, and what is to be done about it.
type situation struct {
	Actions
	seen    *podmill.RuntimePod
	sandbox *podmill.Sandbox // nil if there is none to use
	roomy   *corev1.Pod      // what its cgroup has to hold meanwhile
	refused bool             // nothing of the pod may be started
}

// look observes a pod, plans, and reports how it stands.
func (s *Syncer) look(ctx context.Context, pod *corev1.Pod, m *memory, hooks *beside) (*situation, error) {
	seen, err := s.observe(ctx, pod.UID, m)
	if err != nil {
		return nil, err
	}
	m.learn(pod, seen, time.Now())
	logFailure(ctx, pod, "after a restart of the agent containers may start once more that have started together", m.keepResets())
	hooked := m.hooks(hooks)
	health := s.health(pod, seen, hooked, false)
	current, attempt, why := s.Sandboxes.Choose(pod, seen)
	resizing, actual := m.keeper.actual(seen)
	now := &situation{seen: seen, sandbox: current, roomy: roomy(pod, seen, actual), Actions: Plan(Input{
		Pod: pod, Seen: seen, Sandbox: current, SandboxAttempt: attempt, SandboxWhy: why,
		Active: m.active, Known: m.known, Ended: m.ended, Logged: m.logged, Backoff: m.backoff, Adopted: m.adopted, Held: m.held, MaxBackoff: s.maxBackoff,
		Health: health, Unhealthy: m.unhealthy, Hooks: hooked, Resizing: resizing, Actual: actual,
	}, time.Now())}
	if now.End == nil {
		// It may have been put back while no agent ran, before the one that ran last had ended it. One that is over goes on with that end.
		if err := m.keeper.live(); err != nil {
			return nil, err
		}
	}
	now.refused = s.withhold(pod, m, &now.Actions)
	s.wakeAt(pod.UID, m, now.Until)
	s.tellWaits(pod, m, &now.Actions)
	err = s.report(ctx, m.wanted, seen, podmill.Progress{
		Waiting: m.waiting(pod, seen, &now.Actions, hooked), Health: health, Resize: m.keeper.progress(&m.sizing),
	})
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	return now, nil
}

// observe looks anew if the syncer itself may have changed the pod since it last looked; else what is known is good enough.
func (s *Syncer) observe(ctx context.Context, uid types.UID, m *memory) (*podmill.RuntimePod, error) {
	seen, err := s.Cache.Observe(ctx, uid, m.dirty)
	if err != nil {
		m.dirty = true
		return nil, fmt.Errorf("observe: %w", err)
	}
	m.dirty = false
	return seen, nil
}

// probe has the containers probed that were seen, and returns how they are.
func (s *Syncer) probe(pod *corev1.Pod, seen *podmill.RuntimePod, ending bool) map[string]podmill.Health {
	if s.prober == nil {
		return nil
	}
	return s.prober.Probe(pod, seen, ending)
}

// health returns how the containers are. One whose postStart hook has not succeeded has not started, and is not probed.
func (s *Syncer) health(pod *corev1.Pod, seen *podmill.RuntimePod, hooked map[string]Hooks, ending bool) map[string]podmill.Health {
	unstarted := func(c *podmill.Container) bool { return hooked[c.ID].PostStart != "" }
	if !anyOf(seen.Containers, unstarted) {
		return s.probe(pod, seen, ending)
	}
	rest := *seen
	rest.Containers = slices.DeleteFunc(slices.Clone(seen.Containers), func(c podmill.Container) bool { return unstarted(&c) })
	health := maps.Clone(s.probe(pod, &rest, ending))
	if health == nil {
		health = map[string]podmill.Health{}
	}
	for i := range seen.Containers {
		if c := &seen.Containers[i]; unstarted(c) {
			health[c.ID] = podmill.Health{}
		}
	}
	return health
}

// wakeAt has the pod synced again when its next back-off is over, or a volume of it wants to be brought up to date.
func (s *Syncer) wakeAt(uid types.UID, m *memory, at time.Time) {
	m.silence()
	if !m.isStale(time.Now()) {
		at = earlier(at, m.renew)
	}
	if !at.IsZero() && s.wake != nil {
		m.alarm = time.AfterFunc(time.Until(at), func() { s.wake(uid) })
	}
}

// act carries out what was planned.
func (s *Syncer) act(ctx context.Context, pod *corev1.Pod, m *memory, hooks *beside, now *situation) error {
	var p *preparation
	var err error
	if now.RunSandbox != nil || len(now.Start) > 0 {
		if p, err = s.prepare(ctx, pod, now); err != nil {
			m.blame(now.Start, err)
			return err
		}
		m.mounted(p.volumes)
	}
	m.dirty = true
	m.condemned(now.Kill, now.seen)
	for i := range now.PreStop {
		hooks.preStop(now.seen, &now.PreStop[i])
	}
	unkilled, failed := s.kill(ctx, pod, hooks, now.Kill)
	if failed != nil && now.RunSandbox != nil {
		return failed // never a second sandbox while something runs in the first
	}
	if now.StopSandboxes {
		if err := s.Sandboxes.Stop(ctx, now.seen); err != nil {
			return err
		}
	}
	failed = errors.Join(failed, s.resize(ctx, pod, m, now))
	if p != nil {
		failed = errors.Join(failed, s.bringUp(ctx, pod, m, hooks, now, p, unkilled))
	}
	if now.Reset {
		m.reset(pod)
		if err := m.keepResets(); err != nil {
			return errors.Join(failed, err) // what says why all start again stays until that is kept
		}
	}
	return errors.Join(failed, s.removeDead(ctx, pod, now.Remove))
}

// logFailure says what is of no consequence to the pod, but may be to whoever looks for a cause.
func logFailure(ctx context.Context, pod *corev1.Pod, what string, err error) {
	if err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, what, "pod", podmill.RefOf(pod).String())
	}
}

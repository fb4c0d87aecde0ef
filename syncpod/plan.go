package syncpod

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/lifecycle"
)

// Plan returns what has to be done for a pod, given what is wanted, what is there and what is remembered. It is a pure function: the
// same input at the same time gives the same actions, and the pod that has all it wants gives none. When the actions have been carried out, or have
// failed, plan again from a new look; a pod whose runtime does what it is told settles after a few rounds.
//
// The rules are the kubelet's. Newest is always the highest attempt, and no decision but the back-off asks a clock.
func Plan(in Input, now time.Time) Actions {
	p := planner{Input: in, now: now}
	switch {
	case in.Termination != nil:
		p.end()
	case over(in.Pod) || p.done():
		p.End = &podmill.Kill{}
	case p.timeIsUp():
		p.End = outOfTime()
	case p.restartAll():
	default:
		p.reconcile()
	}
	return p.Actions
}

// over reports that the pod's last known phase is a final one. It never leaves that, whatever the runtime has forgotten.
func over(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

type planner struct {
	Input
	Actions
	now time.Time
}

// reconcile makes what is there into what is wanted: first the containers go that must not run, then the sandbox comes, then the containers.
func (p *planner) reconcile() {
	p.killStrays()
	if p.Sandbox == nil {
		if !p.anythingToStart() {
			return // when what runs has been killed, the pod is done: it gets no new sandbox for that
		}
		p.StopSandboxes = len(p.Seen.Sandboxes) > 0
		p.RunSandbox = &RunSandbox{Attempt: p.SandboxAttempt, Why: p.SandboxWhy}
	}
	p.ephemeralContainers()
	if p.initContainers() {
		for i := range p.Pod.Spec.Containers {
			p.container(&p.Pod.Spec.Containers[i], lifecycle.App)
		}
	}
	p.resize()
	p.removeDead()
	p.tellReset()
}

// done reports that the pod's work is over by itself: an init container has failed for good, or every app container has ended for
// good. Sidecars have no say.
func (p *planner) done() bool {
	if anyContainer(p.Pod, p.restartsAll) {
		return false
	}
	if !p.appStarted() {
		for i := range p.Pod.Spec.InitContainers {
			c := &p.Pod.Spec.InitContainers[i]
			last, ended := p.ended(c.Name)
			if ended && !last.Reset && last.ExitCode != 0 && !lifecycle.Restarts(p.Pod, c, lifecycle.InitKind(c), last.ExitCode) {
				return true
			}
		}
	}
	for i := range p.Pod.Spec.Containers {
		c := &p.Pod.Spec.Containers[i]
		if last, ended := p.ended(c.Name); !ended || last.Reset || lifecycle.Restarts(p.Pod, c, lifecycle.App, last.ExitCode) {
			return false
		}
	}
	return true
}

// ended returns how the newest instance of a container ended, if it has. One that the runtime does not know any more has ended,
// too: it does not run a second time only because it was collected.
func (p *planner) ended(name string) (last Record, ended bool) {
	known, ok := p.Known[name]
	newest := p.Seen.Container(name)
	switch {
	case newest == nil:
		return known, ok
	case newest.State != podmill.StateExited:
		return Record{}, false
	case ok && known.Attempt > newest.Attempt:
		return known, true
	}
	last, _ = recordOf(newest)
	if at, ok := p.Ended[newest.ID]; ok {
		last.FinishedAt = at
	}
	if p.Unhealthy[newest.ID] && last.ExitCode == 0 {
		last.ExitCode = lifecycle.ExitUnknown
	}
	return last, true
}

// timeIsUp reports that the pod has been active for as long as it may, and sees to it that the moment is not missed.
func (p *planner) timeIsUp() bool {
	at, limited := activeDeadline(p.Pod, p.Active)
	if limited {
		p.planAgain(at)
	}
	return limited && !p.now.Before(at)
}

// anythingToStart reports that an app container would be started if there were a sandbox, and what runs elsewhere were killed.
func (p *planner) anythingToStart() bool {
	return anyOf(p.Pod.Spec.Containers, func(c *corev1.Container) bool {
		last, ended := p.ended(c.Name)
		if ended {
			return last.Reset || lifecycle.Restarts(p.Pod, c, lifecycle.App, last.ExitCode)
		}
		newest := p.Seen.Container(c.Name)
		return newest == nil || newest.State == podmill.StateCreated || lifecycle.Restarts(p.Pod, c, lifecycle.App, lifecycle.ExitUnknown)
	})
}

// container decides about one container whose turn it is, and reports whether it runs as it should.
func (p *planner) container(c *corev1.Container, kind lifecycle.Kind) (runs bool) {
	newest := p.Seen.Container(c.Name)
	last, ended := p.ended(c.Name)
	switch {
	case ended:
		p.again(c, kind, last)
	case newest == nil:
		p.start(c, kind, p.Backoff[BackoffKey(c)], "it has not run yet")
	case !p.killed(newest):
		return true
	case p.Health[newest.ID].Failed != "" || p.Hooks[newest.ID].PostStart == PostStartFailed:
		return false // it starts again when it has ended, after its back-off
	case newest.State == podmill.StateCreated || p.replaced(c, newest) != "":
		p.start(c, kind, p.Backoff[BackoffKey(c)], "in place of the one before")
	case lifecycle.Restarts(p.Pod, c, kind, lifecycle.ExitUnknown):
		p.start(c, kind, p.Backoff[BackoffKey(c)], "the one before was killed")
	}
	return false
}

// again starts a container that has ended, if its policy wants that, when its back-off is over. An init container that ended in an older sandbox runs
// again in any case.
func (p *planner) again(c *corev1.Container, kind lifecycle.Kind, last Record) {
	if !last.Reset && !lifecycle.Restarts(p.Pod, c, kind, last.ExitCode) && (kind != lifecycle.Init || last.ExitCode != 0) {
		return
	}
	backoff := p.Backoff[BackoffKey(c)]
	if wait := backoff.Wait(last.FinishedAt, p.now); wait > 0 {
		p.planAgain(p.now.Add(wait))
		if !last.Reset { // of which it is told until it starts
			p.waitWith(c.Name, p.crashLoop(c.Name, backoff.Delay))
		}
		return
	}
	p.start(c, kind, backoff.Next(last.FinishedAt, p.now, p.MaxBackoff), fmt.Sprintf("it ended with %d", last.ExitCode))
}

func (p *planner) start(c *corev1.Container, kind lifecycle.Kind, after Backoff, why string) {
	if held, ok := p.Held[BackoffKey(c)]; ok && p.now.Before(held.Until) {
		p.waitWith(c.Name, held.Waiting)
		p.planAgain(held.Until)
		return
	}
	p.Start = append(p.Start, Start{Container: c, Kind: kind, Attempt: p.nextAttempt(c.Name), Backoff: after, Why: why})
}

// nextAttempt returns an attempt that was never used, as far as runtime, last status and logs know, so that counts never fall and no log is overwritten.
func (p *planner) nextAttempt(name string) uint32 {
	next := p.Logged[name]
	if r, ok := p.Known[name]; ok {
		next = max(next, r.Attempt+1)
	}
	for i := range p.Seen.Containers {
		if c := &p.Seen.Containers[i]; c.Name == name {
			next = max(next, c.Attempt+1)
		}
	}
	return next
}

// crashLoop is a container's back-off in the kubelet's words: a text that stays the same while the wait lasts makes no new status.
func (p *planner) crashLoop(name string, delay time.Duration) corev1.ContainerStateWaiting {
	return corev1.ContainerStateWaiting{
		Reason: reasonCrashLoop,
		Message: fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)",
			delay, name, p.Pod.Name, p.Pod.Namespace, p.Pod.UID),
	}
}

// waitWith notes why a container waits.
func (p *planner) waitWith(name string, why corev1.ContainerStateWaiting) {
	if p.Waiting == nil {
		p.Waiting = map[string]corev1.ContainerStateWaiting{}
	}
	p.Waiting[name] = why
}

func (p *planner) planAgain(at time.Time) {
	if at.After(p.now) && (p.Until.IsZero() || at.Before(p.Until)) {
		p.Until = at
	}
}

// removeDead removes dead instances but for the newest one of each container, which holds the exit code and the log that people
// ask for, and of a container that must not run again is the proof that it has run.
func (p *planner) removeDead() {
	all := p.Seen.Containers
	for i := range all {
		c := &all[i]
		dead := func(o *podmill.Container) bool { return o.Name == c.Name && o.State == podmill.StateExited }
		switch {
		case c.State == podmill.StateExited && anyOf(all[:i], dead),
			c.State == podmill.StateUnknown && p.Seen.Container(c.Name) != c:
			p.Remove = append(p.Remove, Remove{ID: c.ID, Name: c.Name, Attempt: c.Attempt})
		}
	}
}

// anyOf reports that one of a list is what is asked for. It copies none: containers are large.
func anyOf[T any](list []T, is func(*T) bool) bool {
	for i := range list {
		if is(&list[i]) {
			return true
		}
	}
	return false
}

package agent_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	. "github.com/podmill/podmill/podmilltest"
)

// What the probes and hooks of simulated pods run: a script, and what it is run for.
const (
	asStartup   = "startup"
	asLiveness  = "liveness"
	asReadiness = "readiness"
	asPostStart = "postStart"
	asPreStop   = "preStop"
)

func simExec(script, as string) *corev1.ExecAction {
	return &corev1.ExecAction{Command: append(Script(script), as)}
}

func simProbe(rng *rand.Rand, as string) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{Exec: simExec(pick(rng, []string{"exit 0", "sleep 0.2; exit 0"}), as)}, TimeoutSeconds: 1,
		PeriodSeconds: pick(rng, []int32{1, 3, 10}), FailureThreshold: pick(rng, []int32{1, 3}), SuccessThreshold: 1,
	}
}

// watched gives a container some probes and hooks. All of them are well as long as the world makes no trouble.
func watched(rng *rand.Rand) ContainerOption {
	return func(c *corev1.Container) {
		if chance(rng, 3) {
			c.StartupProbe = simProbe(rng, asStartup)
		}
		if chance(rng, 3) {
			c.LivenessProbe = simProbe(rng, asLiveness)
		}
		if chance(rng, 3) {
			c.ReadinessProbe = simProbe(rng, asReadiness)
		}
		hooks := &corev1.Lifecycle{}
		if chance(rng, 5) {
			hooks.PostStart = &corev1.LifecycleHandler{Exec: simExec("sleep 1; exit 0", asPostStart)}
		}
		switch rng.IntN(6) {
		case 0:
			hooks.PreStop = &corev1.LifecycleHandler{Exec: simExec("sleep 2; exit 0", asPreStop)}
		case 1:
			hooks.PreStop = &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 30}}
		}
		if hooks.PostStart != nil || hooks.PreStop != nil {
			c.Lifecycle = hooks
		}
	}
}

// hooked gives a container hooks that take their time, and probes.
func hooked(c *corev1.Container) {
	for as, p := range map[string]**corev1.Probe{asStartup: &c.StartupProbe, asLiveness: &c.LivenessProbe, asReadiness: &c.ReadinessProbe} {
		*p = &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{Exec: simExec("exit 0", as)}, TimeoutSeconds: 1, PeriodSeconds: 1, FailureThreshold: 1, SuccessThreshold: 1,
		}
	}
	c.Lifecycle = &corev1.Lifecycle{
		PostStart: &corev1.LifecycleHandler{Exec: simExec("sleep 1; exit 0", asPostStart)},
		PreStop:   &corev1.LifecycleHandler{Exec: simExec("sleep 2; exit 0", asPreStop)},
	}
}

// ruled gives a container a policy of its own, and perhaps a rule.
func ruled(rng *rand.Rand) ContainerOption {
	action := pick(rng, []corev1.ContainerRestartRuleAction{
		"", corev1.ContainerRestartRuleActionRestart, corev1.ContainerRestartRuleActionRestartAllContainers,
	})
	return func(c *corev1.Container) {
		if never := corev1.ContainerRestartPolicyNever; action == "" {
			c.RestartPolicy = &never
		} else {
			rule(action, 1, 3)(c)
		}
	}
}

// rule gives a container that does not restart a rule for some codes.
func rule(action corev1.ContainerRestartRuleAction, codes ...int32) ContainerOption {
	return func(c *corev1.Container) {
		never := corev1.ContainerRestartPolicyNever
		c.RestartPolicy = &never
		c.RestartPolicyRules = []corev1.ContainerRestartRule{{
			Action:    action,
			ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: codes},
		}}
	}
}

// activeFor limits a pod's life.
func activeFor(d time.Duration) PodOption {
	return func(pod *corev1.Pod) {
		seconds := int64(d / time.Second)
		pod.Spec.ActiveDeadlineSeconds = &seconds
	}
}

// Exec implements [podmill.Execer]: here one sees what the agent is told of probes and hooks. While there is trouble some fail, and some do not end.
func (f *facade) Exec(ctx context.Context, id string, command []string) (*podmill.ExecResult, error) {
	s, i := f.p.sim, f.p.instance(id)
	as := command[len(command)-1]
	s.mu.Lock()
	fails, hangs := s.troubled && s.luck(4, "fails "+as+id), s.troubled && s.luck(8, "hangs "+as+id)
	s.mu.Unlock()
	var result *podmill.ExecResult
	var err error
	switch {
	case hangs && as != asPostStart:
		<-ctx.Done()
		err = ctx.Err()
	case fails:
		result = &podmill.ExecResult{ExitCode: 1}
	default:
		result, err = f.FaultyRuntime.Exec(ctx, id, command)
	}
	if f.p.dead.Load() {
		return nil, errDead
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil && result.ExitCode == 0:
		i.succeeded(as)
	case as == asLiveness || as == asStartup:
		i.unhealthy = true
	}
	return result, err
}

// isHook reports that a command is a hook's.
func isHook(command []string) bool {
	as := command[len(command)-1]
	return as == asPostStart || as == asPreStop
}

// succeeded notes that a probe or a hook of the container did.
func (i *instance) succeeded(as string) {
	if i.passed == nil {
		i.passed = map[string]time.Time{}
	}
	i.passed[as] = time.Now()
}

// unhooked reports that a container may be stopped for its postStart hook: it has not succeeded, or that could be known to nobody
// but an agent which was killed right then. Callers hold mu.
func (s *sim) unhooked(spec *corev1.Container, i *instance) bool {
	if spec.Lifecycle == nil || spec.Lifecycle.PostStart == nil {
		return false
	}
	at, passed := i.passed[asPostStart]
	return !passed || s.process == nil || !at.Add(time.Second).Before(s.started) && !at.After(s.started)
}

// judgeHealth judges what is told of a container that runs: it is not ready, nor has it started, before its own probes have said so.
func (s *sim) judgeHealth(sp *simPod, c *corev1.ContainerStatus) {
	spec := s.spec(sp, c.Name)
	if spec == nil || c.State.Running == nil {
		return
	}
	i := s.told(sp, c.Name, c.ContainerID)
	if i == nil {
		return
	}
	for _, of := range []struct {
		probe *corev1.Probe
		as    string
		said  bool
	}{{spec.StartupProbe, asStartup, c.Started != nil && *c.Started}, {spec.ReadinessProbe, asReadiness, c.Ready}} {
		if _, passed := i.passed[of.as]; of.probe != nil && of.said && !passed {
			s.breach(5, "%s#%d of %s is said to have passed its %s probe, which has not succeeded", i.name, i.attempt, sp.ref(), of.as)
		}
	}
}

// ownPolicy reports that what becomes of a pod is not for its restart policy alone to say.
func ownPolicy(pod *corev1.Pod) bool {
	return pod.Spec.ActiveDeadlineSeconds != nil || slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.RestartPolicy != nil })
}

// startedProbe reports that a container waits for no startup probe.
func startedProbe(spec *corev1.Container, i *instance) bool {
	_, passed := i.passed[asStartup]
	return spec.StartupProbe == nil || passed
}

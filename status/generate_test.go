package status_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	. "github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/status"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// in makes an instance of a container, in the pod's only sandbox.
func in(name string, attempt uint32, state podmill.State, code int32) podmill.Container {
	c := podmill.Container{ID: name, SandboxID: "box", Name: name, Attempt: attempt, State: state, ExitCode: code, StartedAt: now.Add(-time.Minute)}
	if state == podmill.StateExited {
		c.FinishedAt = now.Add(-time.Second)
	}
	return c
}

func running(name string) podmill.Container            { return in(name, 0, podmill.StateRunning, 0) }
func exited(name string, code int32) podmill.Container { return in(name, 0, podmill.StateExited, code) }

func seen(containers ...podmill.Container) *podmill.RuntimePod {
	return &podmill.RuntimePod{
		Sandboxes:  []podmill.Sandbox{{ID: "box", Ready: true, IPs: []string{"10.1.0.7", "fd00::7"}}},
		Containers: containers,
	}
}

// told makes what was last told of containers.
func told(phase corev1.PodPhase, containers ...corev1.ContainerStatus) *corev1.PodStatus {
	return &corev1.PodStatus{Phase: phase, ContainerStatuses: containers}
}

func wasRunning(name string, restarts int32) corev1.ContainerStatus {
	yes := true
	return corev1.ContainerStatus{Name: name, RestartCount: restarts, Started: &yes, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
}

func wasTerminated(name string, restarts, code int32) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, RestartCount: restarts, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Completed"}}}
}

var (
	always    = Pod("default/p", Container("a", "x"), Container("b", "x"))
	onFailure = Pod("default/p", Container("a", "x"), Restart(corev1.RestartPolicyOnFailure))
	never     = Pod("default/p", Container("a", "x"), Container("b", "x"), Restart(corev1.RestartPolicyNever))
	one       = Pod("default/p", Container("a", "x"), Restart(corev1.RestartPolicyNever))
	withInit  = Pod("default/p", InitContainer("i", "x"), Container("a", "x"), Restart(corev1.RestartPolicyNever))
	sidecar   = Pod("default/p", Sidecar("s", "x"), Container("a", "x"), Restart(corev1.RestartPolicyNever))
	gated     = Pod("default/p", Container("a", "x"), Restart(corev1.RestartPolicyNever), func(p *corev1.Pod) {
		p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}}
	})
	together = Pod("default/p", Container("a", "x", func(c *corev1.Container) {
		c.RestartPolicyRules = []corev1.ContainerRestartRule{{
			Action:    corev1.ContainerRestartRuleActionRestartAllContainers,
			ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{88}},
		}}
	}), Container("b", "x"), Restart(corev1.RestartPolicyNever))
	evicted = &podmill.Termination{Reason: "Evicted", Message: "The node was low on resource: memory."}
	removed = &podmill.Termination{}
)

// policy gives a container a restart policy of its own.
func policy(p corev1.ContainerRestartPolicy) ContainerOption {
	return func(c *corev1.Container) { c.RestartPolicy = &p }
}

// withCondition is a pod whose source tells what somebody has said of it.
func withCondition(pod *corev1.Pod, is corev1.ConditionStatus) *corev1.Pod {
	return Edit(pod, func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: "example.com/gate", Status: is}, {Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	})
}

func TestPhase(t *testing.T) {
	for _, tc := range []struct {
		name string
		in   status.Input
		want corev1.PodPhase
	}{
		{"nothing yet", status.Input{Pod: always}, corev1.PodPending},
		{"one of two not started", status.Input{Pod: always, Seen: seen(running("a"))}, corev1.PodPending},
		{"all run", status.Input{Pod: always, Seen: seen(running("a"), running("b"))}, corev1.PodRunning},
		{"one exited and will run again", status.Input{Pod: always, Seen: seen(running("a"), exited("b", 0))}, corev1.PodRunning},
		{"all exited and will run again", status.Input{Pod: always, Seen: seen(exited("a", 0), exited("b", 1))}, corev1.PodRunning},
		{"all done", status.Input{Pod: never, Seen: seen(exited("a", 0), exited("b", 0))}, corev1.PodSucceeded},
		{"one failed, one runs", status.Input{Pod: never, Seen: seen(exited("a", 1), running("b"))}, corev1.PodRunning},
		{"one failed", status.Input{Pod: never, Seen: seen(exited("a", 1), exited("b", 0))}, corev1.PodFailed},
		{"failed and tried again", status.Input{Pod: onFailure, Seen: seen(exited("a", 1))}, corev1.PodRunning},
		{"on failure, done", status.Input{Pod: onFailure, Seen: seen(exited("a", 0))}, corev1.PodSucceeded},
		{"init runs", status.Input{Pod: withInit, Seen: seen(running("i"))}, corev1.PodPending},
		{"init failed for good", status.Input{Pod: withInit, Seen: seen(exited("i", 1))}, corev1.PodFailed},
		{"init was collected, the app proves it", status.Input{Pod: withInit, Seen: seen(running("a"))}, corev1.PodRunning},
		{"a sidecar does not decide", status.Input{Pod: sidecar, Seen: seen(exited("s", 1), exited("a", 0)), Progress: podmill.Progress{Stopped: true}}, corev1.PodSucceeded},
		// B013: the final phase is told when everything has stopped, and a container that never ran is not given an end.
		{"final while something may run", status.Input{Pod: sidecar, Seen: seen(running("s"), exited("a", 0))}, corev1.PodRunning},
		{"evicted, one still stops", status.Input{Pod: always, Seen: seen(running("a"), exited("b", 137)), Progress: podmill.Progress{Termination: evicted}}, corev1.PodRunning},
		{"evicted and stopped", status.Input{Pod: always, Seen: seen(exited("a", 0), exited("b", 0)), Progress: podmill.Progress{Termination: evicted, Stopped: true}}, corev1.PodFailed},
		// B046: a removed pod does not stay Running.
		{"removed, all exited with 0", status.Input{Pod: always, Seen: seen(exited("a", 0), exited("b", 0)), Progress: podmill.Progress{Termination: removed, Stopped: true}}, corev1.PodSucceeded},
		{"removed, one exited with 1", status.Input{Pod: always, Seen: seen(exited("a", 0), exited("b", 1)), Progress: podmill.Progress{Termination: removed, Stopped: true}}, corev1.PodFailed},
		{"removed, never started", status.Input{Pod: always, Progress: podmill.Progress{Termination: removed, Stopped: true}}, corev1.PodFailed},
		{"Succeeded is for ever", status.Input{Pod: always, Seen: seen(running("a"), running("b")), Last: told(corev1.PodSucceeded)}, corev1.PodSucceeded},
		{"Failed is for ever", status.Input{Pod: never, Seen: seen(exited("a", 0), exited("b", 0)), Last: told(corev1.PodFailed)}, corev1.PodFailed},
		// B037, B019: an end that was told stays, when the container is collected.
		{"done and collected", status.Input{Pod: one, Seen: seen(), Last: told(corev1.PodRunning, wasTerminated("a", 0, 0))}, corev1.PodSucceeded},
		{"vanished", status.Input{Pod: one, Seen: seen(), Last: told(corev1.PodRunning, wasRunning("a", 0))}, corev1.PodFailed},
		{"unknown may run", status.Input{Pod: never, Seen: seen(exited("a", 1), in("b", 0, podmill.StateUnknown, 255)), Last: told(corev1.PodRunning, wasRunning("b", 0))}, corev1.PodRunning},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := status.Generate(tc.in, now).Phase; got != tc.want {
				t.Errorf("phase %s, want %s", got, tc.want)
			}
		})
	}
}

// state says a container's status in a word or two.
func state(s corev1.ContainerState) string {
	switch {
	case s.Running != nil:
		return "running"
	case s.Waiting != nil:
		return "waiting: " + s.Waiting.Reason
	case s.Terminated != nil:
		return "terminated: " + s.Terminated.Reason
	default:
		return ""
	}
}

func TestContainerStatus(t *testing.T) {
	waiting := func(reason string) podmill.Progress {
		return podmill.Progress{Waiting: map[string]corev1.ContainerStateWaiting{"a": {Reason: reason, Message: "why"}}}
	}
	oom := exited("a", 137)
	oom.Reason = "OOMKilled"
	type want struct {
		state, last string
		code        int32 // of the state, or else of the last one
		restarts    int32
	}
	for _, tc := range []struct {
		name string
		in   status.Input
		want want
	}{
		{"not created", status.Input{Pod: one}, want{state: "waiting: ContainerCreating"}},
		{"behind init containers", status.Input{Pod: withInit, Seen: seen(running("i"))}, want{state: "waiting: PodInitializing"}},
		{"cannot be pulled", status.Input{Pod: one, Progress: waiting("ErrImagePull")}, want{state: "waiting: ErrImagePull"}},
		{"created", status.Input{Pod: one, Seen: seen(in("a", 0, podmill.StateCreated, 0))}, want{state: "waiting: ContainerCreating"}},
		{"running", status.Input{Pod: one, Seen: seen(running("a"))}, want{state: "running"}},
		// B105
		{"exit 0", status.Input{Pod: one, Seen: seen(exited("a", 0))}, want{state: "terminated: Completed"}},
		{"exit 1", status.Input{Pod: one, Seen: seen(exited("a", 1))}, want{state: "terminated: Error", code: 1}},
		{"out of memory", status.Input{Pod: one, Seen: seen(oom)}, want{state: "terminated: OOMKilled", code: 137}},
		{"waits for the back-off", status.Input{Pod: always, Seen: seen(exited("a", 3)), Progress: waiting("CrashLoopBackOff")}, want{state: "waiting: CrashLoopBackOff", last: "terminated: Error", code: 3}},
		{"runs again", status.Input{Pod: always, Seen: seen(in("a", 2, podmill.StateRunning, 0), in("a", 1, podmill.StateExited, 3))}, want{state: "running", last: "terminated: Error", code: 3, restarts: 2}},
		{"runs again, the last one collected", status.Input{Pod: always, Seen: seen(in("a", 1, podmill.StateRunning, 0)), Last: told(corev1.PodRunning, wasTerminated("a", 0, 3))}, want{state: "running", last: "terminated: Completed", code: 3, restarts: 1}},
		// B024: restart counts never fall.
		{"count from the last status", status.Input{Pod: always, Seen: seen(running("a")), Last: told(corev1.PodRunning, wasRunning("a", 6))}, want{state: "running", restarts: 6}},
		{"count when all are collected", status.Input{Pod: always, Seen: seen(), Last: told(corev1.PodRunning, wasTerminated("a", 6, 1))}, want{state: "terminated: Completed", code: 1, restarts: 6}},
		// B019: the real end, or unknown and 137; never an invented 0.
		{"end is known and collected", status.Input{Pod: one, Seen: seen(), Progress: podmill.Progress{Stopped: true}, Last: told(corev1.PodRunning, wasTerminated("a", 0, 0))}, want{state: "terminated: Completed"}},
		{"vanished and over", status.Input{Pod: one, Seen: seen(), Progress: podmill.Progress{Stopped: true}, Last: told(corev1.PodRunning, wasRunning("a", 1))}, want{state: "terminated: ContainerStatusUnknown", last: "terminated: ContainerStatusUnknown", code: 137, restarts: 1}},
		{"vanished and will run again", status.Input{Pod: always, Seen: seen(), Last: told(corev1.PodRunning, wasRunning("a", 1))}, want{state: "waiting: ContainerCreating", last: "terminated: ContainerStatusUnknown", code: 137, restarts: 1}},
		{"vanished, its own policy is Never", status.Input{Pod: Pod("default/p", Container("a", "x", policy("Never"))), Seen: seen(), Last: told(corev1.PodRunning, wasRunning("a", 1))}, want{state: "terminated: ContainerStatusUnknown", last: "terminated: ContainerStatusUnknown", code: 137, restarts: 1}},
		{"vanished, its own policy is Always", status.Input{Pod: Pod("default/p", Container("a", "x", policy("Always")), Restart("Never")), Seen: seen(), Last: told(corev1.PodRunning, wasRunning("a", 1))}, want{state: "waiting: ContainerCreating", last: "terminated: ContainerStatusUnknown", code: 137, restarts: 1}},
		// B013
		{"never started, pod over", status.Input{Pod: withInit, Seen: seen(exited("i", 1)), Progress: podmill.Progress{Stopped: true}}, want{state: "waiting: PodInitializing"}},
		// B043
		{"unknown keeps what was told", status.Input{Pod: always, Seen: seen(in("a", 3, podmill.StateUnknown, 255)), Last: told(corev1.PodRunning, wasRunning("a", 3))}, want{state: "running", restarts: 3}},
		{"unknown and never told", status.Input{Pod: always, Seen: seen(in("a", 3, podmill.StateUnknown, 255))}, want{state: "waiting: ContainerCreating", restarts: 3}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := status.Generate(tc.in, now).ContainerStatuses[0]
			got := want{state: state(s.State), last: state(s.LastTerminationState), restarts: s.RestartCount}
			if end := s.State.Terminated; end != nil {
				got.code = end.ExitCode
			} else if end := s.LastTerminationState.Terminated; end != nil {
				got.code = end.ExitCode
			}
			if got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
			if s.Ready != (s.State.Running != nil) || *s.Started != s.Ready {
				t.Errorf("ready %v, started %v", s.Ready, *s.Started)
			}
		})
	}
}

func TestConditions(t *testing.T) {
	say := func(s corev1.PodStatus) map[string]string {
		out := map[string]string{}
		for _, c := range s.Conditions {
			out[string(c.Type)] = string(c.Status)
			if c.Reason != "" {
				out[string(c.Type)] += " " + c.Reason
			}
			if c.Message != "" {
				out[string(c.Type)] += ": " + c.Message
			}
		}
		return out
	}
	for _, tc := range []struct {
		name string
		in   status.Input
		want map[string]string
	}{
		{"init runs", status.Input{Pod: withInit, Seen: seen(running("i"))}, map[string]string{
			"PodReadyToStartContainers": "True", "PodScheduled": "True",
			"Initialized":     "False ContainersNotInitialized: containers with incomplete status: [i]",
			"Ready":           "False ContainersNotReady: containers with unready status: [a]",
			"ContainersReady": "False ContainersNotReady: containers with unready status: [a]",
		}},
		{"all run", status.Input{Pod: always, Seen: seen(running("a"), running("b"))}, map[string]string{
			"PodReadyToStartContainers": "True", "PodScheduled": "True", "Initialized": "True", "Ready": "True", "ContainersReady": "True",
		}},
		{"done", status.Input{Pod: one, Seen: seen(exited("a", 0))}, map[string]string{
			"PodReadyToStartContainers": "False", "PodScheduled": "True", "Initialized": "True PodCompleted", "Ready": "False PodCompleted", "ContainersReady": "False PodCompleted",
		}},
		// KEP-580: the pod is ready when its containers are and others say so, too.
		{"a gate that nobody has opened", status.Input{Pod: gated, Seen: seen(running("a"))}, map[string]string{
			"PodReadyToStartContainers": "True", "PodScheduled": "True", "Initialized": "True", "ContainersReady": "True",
			"Ready": `False ReadinessGatesNotReady: corresponding condition of pod readiness gate "example.com/gate" does not exist.`,
		}},
		{"a gate that is closed", status.Input{Pod: withCondition(gated, "False"), Seen: seen(running("a"))}, map[string]string{
			"PodReadyToStartContainers": "True", "PodScheduled": "True", "Initialized": "True", "ContainersReady": "True", "example.com/gate": "False",
			"Ready": `False ReadinessGatesNotReady: the status of pod readiness gate "example.com/gate" is not "True", but False`,
		}},
		{"a gate that is open, as the source has it", status.Input{Pod: withCondition(gated, "True"), Seen: seen(running("a")), Last: &corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: "example.com/gate", Status: "False"}}}}, map[string]string{
			"PodReadyToStartContainers": "True", "PodScheduled": "True", "Initialized": "True", "ContainersReady": "True", "Ready": "True", "example.com/gate": "True",
		}},
		{"an open gate helps no container", status.Input{Pod: withCondition(gated, "True")}, map[string]string{
			"PodReadyToStartContainers": "False", "PodScheduled": "True", "Initialized": "True", "example.com/gate": "True",
			"Ready":           "False ContainersNotReady: containers with unready status: [a]",
			"ContainersReady": "False ContainersNotReady: containers with unready status: [a]",
		}},
		// KEP-3329
		{"evicted and stopped", status.Input{Pod: one, Seen: seen(exited("a", 0)), Progress: podmill.Progress{Termination: evicted, Stopped: true}}, map[string]string{
			"PodReadyToStartContainers": "False", "PodScheduled": "True", "Initialized": "True", "Ready": "False PodFailed", "ContainersReady": "False PodFailed",
			"DisruptionTarget": "True TerminationByKubelet: The node was low on resource: memory.",
		}},
		// KEP-5532
		{"an exit asks for the restart of all", status.Input{Pod: together, Seen: seen(exited("a", 88), running("b"))}, map[string]string{
			"PodReadyToStartContainers": "True", "PodScheduled": "True", "Initialized": "True",
			"Ready":                   "False ContainersNotReady: containers with unready status: [a]",
			"ContainersReady":         "False ContainersNotReady: containers with unready status: [a]",
			"AllContainersRestarting": "True RestartAllContainersStarted: container exited with restart policy rule",
		}},
		{"all were removed for their restart", status.Input{Pod: together, Seen: seen(), Last: &corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.AllContainersRestarting, Status: "True", Reason: "RestartAllContainersStarted"}, {Type: corev1.PodInitialized, Status: "True"},
		}}}, map[string]string{
			"PodReadyToStartContainers": "True", "PodScheduled": "True", "Initialized": "True", "AllContainersRestarting": "False",
			"Ready":           "False ContainersNotReady: containers with unready status: [a b]",
			"ContainersReady": "False ContainersNotReady: containers with unready status: [a b]",
		}},
		{"an exit asks for it in a pod that ends", status.Input{Pod: together, Seen: seen(exited("a", 88), exited("b", 0)), Progress: podmill.Progress{Termination: removed, Stopped: true}}, map[string]string{
			"PodReadyToStartContainers": "False", "PodScheduled": "True", "Initialized": "True", "Ready": "False PodFailed", "ContainersReady": "False PodFailed",
			"AllContainersRestarting": "False PodFailed",
		}},
		{"its time was over", status.Input{Pod: one, Seen: seen(exited("a", 0)), Progress: podmill.Progress{Termination: &podmill.Termination{Reason: "DeadlineExceeded"}, Stopped: true}}, map[string]string{
			"PodReadyToStartContainers": "False", "PodScheduled": "True", "Initialized": "True", "Ready": "False PodFailed", "ContainersReady": "False PodFailed",
		}},
		{"removed: readiness is the probe's business until the end", status.Input{Pod: one, Seen: seen(running("a")), Progress: podmill.Progress{Termination: removed}}, map[string]string{
			"PodReadyToStartContainers": "True", "PodScheduled": "True", "Initialized": "True", "Ready": "True", "ContainersReady": "True",
		}},
		{"initialized stays", status.Input{Pod: withInit, Seen: seen(running("i")), Last: &corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: "Initialized", Status: "True"}}}}, map[string]string{
			"PodReadyToStartContainers": "True", "PodScheduled": "True", "Initialized": "True",
			"Ready":           "False ContainersNotReady: containers with unready status: [a]",
			"ContainersReady": "False ContainersNotReady: containers with unready status: [a]",
		}},
		// B056: unready as soon as the end is decided.
		{"evicted", status.Input{Pod: always, Seen: seen(running("a"), running("b")), Progress: podmill.Progress{Termination: evicted}}, map[string]string{
			"PodReadyToStartContainers": "True", "PodScheduled": "True", "Initialized": "True", "Ready": "False PodFailed", "ContainersReady": "False PodFailed",
		}},
		{"somebody else's condition stays", status.Input{Pod: one, Seen: seen(running("a")), Last: &corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: "example.com/gate", Status: "True"}}}}, map[string]string{
			"PodReadyToStartContainers": "True", "PodScheduled": "True", "Initialized": "True", "Ready": "True", "ContainersReady": "True", "example.com/gate": "True",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, say(status.Generate(tc.in, now))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTransitionTimesMoveOnlyWhenAConditionTurns(t *testing.T) {
	first := status.Generate(status.Input{Pod: one, Seen: seen()}, now)
	later := now.Add(time.Hour)
	second := status.Generate(status.Input{Pod: one, Seen: seen(running("a")), Last: &first}, later)
	for i, c := range second.Conditions {
		turned := c.Status != first.Conditions[i].Status
		if moved := c.LastTransitionTime.Time.Equal(later); moved != turned {
			t.Errorf("%s: turned %v, its time moved %v", c.Type, turned, moved)
		}
	}
	if !second.StartTime.Time.Equal(now) {
		t.Errorf("start time %v, want %v", second.StartTime, now)
	}
	if third := status.Generate(status.Input{Pod: one, Seen: seen(running("a")), Last: &second}, later.Add(time.Hour)); !cmp.Equal(second, third) {
		t.Errorf("nothing happened, and the status changed:\n%s", cmp.Diff(second, third))
	}
}

func TestAddresses(t *testing.T) {
	hosts := []string{"192.0.2.1", "2001:db8::1"}
	host := Pod("default/p", Container("a", "x"), HostNetwork())
	for _, tc := range []struct {
		name string
		in   status.Input
		want string
	}{
		{"of the sandbox", status.Input{Pod: one, Seen: seen(), HostIPs: hosts}, "10.1.0.7"},
		{"of the host", status.Input{Pod: host, Seen: seen(), HostIPs: hosts}, "192.0.2.1"},
		{"kept when the sandbox is gone", status.Input{Pod: one, HostIPs: hosts, Last: &corev1.PodStatus{PodIP: "10.1.0.9"}}, "10.1.0.9"},
	} {
		got := status.Generate(tc.in, now)
		if got.PodIP != tc.want || got.HostIP != hosts[0] || len(got.HostIPs) != 2 {
			t.Errorf("%s: pod %s, host %s %v", tc.name, got.PodIP, got.HostIP, got.HostIPs)
		}
	}
}

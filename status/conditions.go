package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/lifecycle"
)

// verdict is a condition without its history.
type verdict struct {
	ok              bool
	reason, message string
}

// conditions returns the pod's conditions: those that a node agent owns, then those that somebody else set, as they are.
func conditions(in *Input, status *corev1.PodStatus, initialized bool, now time.Time) []corev1.PodCondition {
	others, ready := foreign(in), containersReady(in, status)
	own := []struct {
		kind    corev1.PodConditionType
		verdict verdict
	}{
		{corev1.PodReadyToStartContainers, verdict{ok: sandboxReady(in) && !final(status.Phase)}},
		{corev1.PodInitialized, podInitialized(in, status, initialized)},
		{corev1.PodReady, podReady(in.Pod, others, ready)},
		{corev1.ContainersReady, ready},
		{corev1.PodScheduled, verdict{ok: true}},
	}
	var out []corev1.PodCondition
	for _, o := range own {
		out = append(out, condition(in, o.kind, o.verdict, now))
	}
	if restartable(in.Pod) {
		out = append(out, condition(in, corev1.AllContainersRestarting, restarting(in, status), now))
	}
	out = append(out, resizing(in, status, now)...)
	disrupted := disruption(in, status)
	if disrupted.ok {
		out = append(out, condition(in, corev1.DisruptionTarget, disrupted, now))
	}
	for _, c := range others {
		if c.Type != corev1.DisruptionTarget || !disrupted.ok {
			out = append(out, c)
		}
	}
	return out
}

// foreign returns the conditions that somebody else has set. Where the source tells a pod's status it knows them best.
func foreign(in *Input) []corev1.PodCondition {
	from := in.Pod.Status.Conditions
	if len(from) == 0 {
		from = in.Last.Conditions
	}
	var out []corev1.PodCondition
	for _, c := range from {
		switch c.Type {
		case corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled, corev1.AllContainersRestarting,
			corev1.PodResizePending, corev1.PodResizeInProgress:
		default:
			out = append(out, c)
		}
	}
	if at := slices.IndexFunc(in.Last.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.DisruptionTarget }); at >= 0 {
		told := in.Last.Conditions[at] // by this agent, which the source may not have heard yet
		if !slices.ContainsFunc(out, func(c corev1.PodCondition) bool { return c.Type == corev1.DisruptionTarget }) {
			out = append(out, told)
		}
	}
	return out
}

// disruption is the verdict of DisruptionTarget (KEP-3329): the node agent has ended the pod for the node's sake. As in the kubelet it is told with
// the final phase, and not before.
func disruption(in *Input, status *corev1.PodStatus) verdict {
	t := in.Progress.Termination
	if t == nil || final(in.Last.Phase) || !final(status.Phase) {
		return verdict{}
	}
	switch t.Reason {
	case "Evicted", "Preempting", "Terminated": // by eviction, for a critical pod, by the node's shutdown
		return verdict{ok: true, reason: corev1.PodReasonTerminationByKubelet, message: t.Message}
	}
	return verdict{}
}

// restartable reports that a container of the pod may ask for a restart of all. A pod in which none does has no such condition: it would say nothing.
func restartable(pod *corev1.Pod) bool {
	for c := range lifecycle.Containers(pod) {
		if slices.ContainsFunc(c.RestartPolicyRules, func(r corev1.ContainerRestartRule) bool {
			return r.Action == corev1.ContainerRestartRuleActionRestartAllContainers
		}) {
			return true
		}
	}
	return false
}

// restarting is the verdict of AllContainersRestarting (KEP-5532), with the kubelet's words: from the exit that asks for it until all instances are
// removed, of which the one that asked is the last. What starts after that is a start as any other.
func restarting(in *Input, status *corev1.PodStatus) verdict {
	switch {
	case status.Phase == corev1.PodSucceeded:
		return verdict{reason: "PodCompleted"}
	case status.Phase == corev1.PodFailed:
		return verdict{reason: "PodFailed"}
	case in.Progress.Termination != nil:
		return verdict{}
	}
	for c := range lifecycle.Containers(in.Pod) {
		newest := in.Seen.Container(c.Name)
		if newest != nil && newest.State == podmill.StateExited && lifecycle.RestartsAll(c, newest.ExitCode) {
			return verdict{ok: true, reason: "RestartAllContainersStarted", message: "container exited with restart policy rule"}
		}
	}
	return verdict{}
}

// podReady is the verdict of Ready: that of the containers, and where they are ready that of the pod's readiness gates (KEP-580).
func podReady(pod *corev1.Pod, others []corev1.PodCondition, containers verdict) verdict {
	if !containers.ok {
		return containers
	}
	var unready []string
	for _, gate := range pod.Spec.ReadinessGates {
		at := slices.IndexFunc(others, func(c corev1.PodCondition) bool { return c.Type == gate.ConditionType })
		switch {
		case at < 0:
			unready = append(unready, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", gate.ConditionType))
		case others[at].Status != corev1.ConditionTrue:
			unready = append(unready, fmt.Sprintf(`the status of pod readiness gate %q is not "True", but %v`, gate.ConditionType, others[at].Status))
		}
	}
	if len(unready) > 0 {
		return verdict{reason: "ReadinessGatesNotReady", message: strings.Join(unready, ", ")}
	}
	return containers
}

// condition makes a condition of a verdict. Its transition time moves only when the verdict turns.
func condition(in *Input, kind corev1.PodConditionType, v verdict, now time.Time) corev1.PodCondition {
	c := corev1.PodCondition{
		Type: kind, Status: corev1.ConditionFalse, Reason: v.reason, Message: v.message,
		ObservedGeneration: in.Pod.Generation, LastTransitionTime: seconds(now),
	}
	if v.ok {
		c.Status = corev1.ConditionTrue
	}
	for i := range in.Last.Conditions {
		if last := &in.Last.Conditions[i]; last.Type == kind && last.Status == c.Status {
			c.LastTransitionTime = last.LastTransitionTime
		}
	}
	return c
}

// sandboxReady is KEP-3085's condition: the pod's sandbox is there, with its network.
func sandboxReady(in *Input) bool {
	sandbox := readySandbox(in.Seen)
	return sandbox != nil && (in.Pod.Spec.HostNetwork || len(sandbox.IPs) > 0)
}

func podInitialized(in *Input, status *corev1.PodStatus, initialized bool) verdict {
	switch {
	case status.Phase == corev1.PodSucceeded:
		return verdict{ok: true, reason: "PodCompleted"}
	case initialized, was(in, corev1.PodInitialized):
		return verdict{ok: true} // and stays so: a new sandbox that has to be initialized again does not undo it
	}
	var incomplete []string
	for i := range status.InitContainerStatuses {
		s := &status.InitContainerStatuses[i]
		done := s.Ready
		if sidecar(&in.Pod.Spec.InitContainers[i]) {
			done = s.Started != nil && *s.Started
		}
		if !done {
			incomplete = append(incomplete, s.Name)
		}
	}
	return verdict{reason: "ContainersNotInitialized", message: fmt.Sprintf("containers with incomplete status: [%s]", strings.Join(incomplete, " "))}
}

// was reports that a condition was True when it was last told.
func was(in *Input, kind corev1.PodConditionType) bool {
	return slices.ContainsFunc(in.Last.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind && c.Status == corev1.ConditionTrue })
}

// containersReady is the verdict of ContainersReady. A pod whose end has a reason of its own (an eviction, a
// deadline) is unready from the moment that this was decided.
func containersReady(in *Input, status *corev1.PodStatus) verdict {
	t := in.Progress.Termination
	switch {
	case status.Phase == corev1.PodSucceeded:
		return verdict{reason: "PodCompleted"}
	case status.Phase == corev1.PodFailed, t != nil && t.Reason != "":
		return verdict{reason: "PodFailed"}
	}
	var unready []string
	for i := range in.Pod.Spec.InitContainers {
		if s := &status.InitContainerStatuses[i]; sidecar(&in.Pod.Spec.InitContainers[i]) && !s.Ready {
			unready = append(unready, s.Name)
		}
	}
	for i := range status.ContainerStatuses {
		if s := &status.ContainerStatuses[i]; !s.Ready {
			unready = append(unready, s.Name)
		}
	}
	if len(unready) > 0 {
		return verdict{reason: "ContainersNotReady", message: fmt.Sprintf("containers with unready status: [%s]", strings.Join(unready, " "))}
	}
	return verdict{ok: true}
}

// seconds is a time as the API holds it.
func seconds(t time.Time) metav1.Time {
	return metav1.NewTime(t).Rfc3339Copy()
}

package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// verdict is a condition without its history.
type verdict struct {
	ok              bool
	reason, message string
}

// conditions returns the pod's conditions: those that a node agent owns, then those that somebody else set, as they were.
func conditions(in *Input, status *corev1.PodStatus, initialized bool, now time.Time) []corev1.PodCondition {
	ready := containersReady(in, status)
	own := []struct {
		kind    corev1.PodConditionType
		verdict verdict
	}{
		{corev1.PodReadyToStartContainers, verdict{ok: sandboxReady(in) && !final(status.Phase)}},
		{corev1.PodInitialized, podInitialized(in, status, initialized)},
		{corev1.PodReady, ready},
		{corev1.ContainersReady, ready},
		{corev1.PodScheduled, verdict{ok: true}},
	}
	var out []corev1.PodCondition
	for _, o := range own {
		out = append(out, condition(in, o.kind, o.verdict, now))
	}
	for _, c := range in.Last.Conditions {
		if !slices.ContainsFunc(out, func(o corev1.PodCondition) bool { return o.Type == c.Type }) {
			out = append(out, c)
		}
	}
	return out
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
	case initialized:
		return verdict{ok: true}
	}
	var incomplete []string
	for i := range status.InitContainerStatuses {
		s := &status.InitContainerStatuses[i]
		if done := s.Ready && (s.State.Terminated != nil || sidecar(&in.Pod.Spec.InitContainers[i])); !done {
			incomplete = append(incomplete, s.Name)
		}
	}
	return verdict{reason: "ContainersNotInitialized", message: fmt.Sprintf("containers with incomplete status: [%s]", strings.Join(incomplete, " "))}
}

// containersReady is the verdict of both Ready and ContainersReady. A pod whose end has a reason of its own (an eviction, a
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

package agent

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/lifecycle"
)

// remembering is a source whose pods come with the statuses that the agent knew before it was restarted. Only the first
// Replace is looked at: a pod that comes later is a new one, even if it has the UID of one that is over.
type remembering struct {
	podmill.PodSource
	statuses map[types.UID]corev1.PodStatus
}

// Run delivers what the source delivers.
func (s *remembering) Run(ctx context.Context, deliver func(podmill.PodUpdate)) error {
	first := true
	return s.PodSource.Run(ctx, func(u podmill.PodUpdate) {
		if first && u.Op == podmill.ReplacePods {
			u.Pods = s.recall(u.Pods)
			first = false
		}
		deliver(u)
	})
}

func (s *remembering) recall(pods []*corev1.Pod) []*corev1.Pod {
	out := make([]*corev1.Pod, len(pods))
	for i, pod := range pods {
		out[i] = pod
		if known, ok := s.statuses[pod.UID]; ok && pod.Status.Phase == "" && !removed(pod, &known) {
			out[i] = pod.DeepCopy()
			out[i].Status = known
		}
	}
	return out
}

// removed reports that a status is that of a pod which was ended because nobody wanted it: it would not have come to that by itself. If it is
// wanted now it was put back, before the agent that ran then could finish with it, and is another one.
func removed(pod *corev1.Pod, status *corev1.PodStatus) bool {
	if status.Phase != corev1.PodSucceeded && status.Phase != corev1.PodFailed || status.Reason != "" {
		return false
	}
	over := true
	for c, kind := range lifecycle.Containers(pod) {
		end := endOf(c.Name, status)
		stays := end != nil && !lifecycle.Restarts(pod, c, kind, end.ExitCode)
		switch {
		case kind == lifecycle.Init && stays && end.ExitCode != 0:
			return false // it has failed for good
		case kind == lifecycle.App && !stays:
			over = false
		}
	}
	return !over
}

// endOf returns how a container ended, nil if it did not.
func endOf(name string, status *corev1.PodStatus) *corev1.ContainerStateTerminated {
	for _, list := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses} {
		for i := range list {
			if list[i].Name == name {
				return list[i].State.Terminated
			}
		}
	}
	return nil
}

package agent

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
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
		if known, ok := s.statuses[pod.UID]; ok && pod.Status.Phase == "" {
			out[i] = pod.DeepCopy()
			out[i].Status = known
		}
	}
	return out
}

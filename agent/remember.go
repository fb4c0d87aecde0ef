package agent

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/lifecycle"
)

// remembering is a source whose pods come with the statuses that the agent knew before it was restarted, until the first Replace and with it: a pod that comes
// later is a new one, even if it has the UID of one that is over.
type remembering struct {
	podmill.PodSource
	statuses map[types.UID]corev1.PodStatus
}

// Run delivers what the source delivers.
func (s *remembering) Run(ctx context.Context, deliver func(podmill.PodUpdate)) error {
	synced := false
	return s.PodSource.Run(ctx, func(u podmill.PodUpdate) {
		if !synced && u.Op != podmill.DeletePods {
			u.Pods = s.recall(u.Pods)
		}
		synced = synced || u.Op == podmill.ReplacePods
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

// removed reports that a status is that of a pod which was ended because nobody wanted it: its restart policy does not let it come to
// that by itself. If it is wanted now it was put back, before the agent that ran then could finish with it, and is another one.
func removed(pod *corev1.Pod, status *corev1.PodStatus) bool {
	for c := range lifecycle.Containers(pod) {
		if lifecycle.InitKind(c) != lifecycle.Sidecar && (c.RestartPolicy != nil || len(c.RestartPolicyRules) > 0) {
			return false // it may end in more ways
		}
	}
	policy := pod.Spec.RestartPolicy
	return status.Reason == "" &&
		(status.Phase == corev1.PodFailed && policy != corev1.RestartPolicyNever ||
			status.Phase == corev1.PodSucceeded && policy == corev1.RestartPolicyAlways)
}

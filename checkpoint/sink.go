package checkpoint

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// Sink returns a sink that keeps the newest status of each pod of a kept source, whether the sink to takes it or not. The sink is handed pods as their sources
// told them, with the statuses that they have there.
func (c *Checkpoint) Sink(to podmill.StatusSink) podmill.StatusSink {
	return &sink{to: to, checkpoint: c}
}

type sink struct {
	to         podmill.StatusSink
	checkpoint *Checkpoint
}

func (s *sink) Unwrap() any { return s.to }

// UpdateStatus implements [podmill.StatusSink].
func (s *sink) UpdateStatus(ctx context.Context, pod *corev1.Pod, status *corev1.PodStatus) error {
	var kept error
	if told := s.checkpoint.pod(pod.UID); told != nil {
		pod = told
		kept = s.checkpoint.journal.put(statusKey(pod.UID), status)
		if over(status) {
			_ = s.checkpoint.commit(ctx) // nobody else would know after a loss of power; the log has what went wrong
		}
		s.checkpoint.settle(ctx)
	}
	return errors.Join(s.to.UpdateStatus(ctx, pod, status), kept)
}

// FinishPod implements [podmill.StatusSink]. Until it has succeeded the pod is kept, and stopped again after a restart.
func (s *sink) FinishPod(ctx context.Context, pod *corev1.Pod) error {
	if err := s.to.FinishPod(ctx, pod); err != nil {
		return err
	}
	s.checkpoint.forget(pod.UID)
	s.checkpoint.settle(ctx)
	return nil
}

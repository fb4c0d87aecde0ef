package podmilltest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// StatusSink is a [podmill.StatusSink] that keeps every status that it was given, as an API server's history would show it.
type StatusSink struct {
	mu   sync.Mutex
	pods map[types.UID]*delivered
	fail func(pod *corev1.Pod) error
}

type delivered struct {
	statuses []corev1.PodStatus
	finished bool
	gone     bool
}

var _ podmill.StatusSink = (*StatusSink)(nil)

// NewStatusSink returns an empty sink.
func NewStatusSink() *StatusSink { return &StatusSink{pods: map[types.UID]*delivered{}} }

// UpdateStatus implements [podmill.StatusSink].
func (s *StatusSink) UpdateStatus(ctx context.Context, pod *corev1.Pod, status *corev1.PodStatus) error {
	if err := s.failure(ctx, pod); err != nil {
		return fmt.Errorf("update status of pod %s: %w", podmill.RefOf(pod), err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.of(pod.UID)
	if d.gone {
		return fmt.Errorf("update status of pod %s: %w", podmill.RefOf(pod), podmill.ErrGone)
	}
	if n := len(d.statuses); n > 0 && cmp.Equal(d.statuses[n-1], *status) {
		return nil
	}
	d.statuses = append(d.statuses, *status.DeepCopy())
	return nil
}

// FinishPod implements [podmill.StatusSink]. Of a pod that has finished no status is taken any more.
func (s *StatusSink) FinishPod(ctx context.Context, pod *corev1.Pod) error {
	if err := s.failure(ctx, pod); err != nil {
		return fmt.Errorf("finish pod %s: %w", podmill.RefOf(pod), err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.of(pod.UID)
	d.finished, d.gone = true, true
	return nil
}

// of returns what was delivered of a pod.
func (s *StatusSink) of(uid types.UID) *delivered {
	d := s.pods[uid]
	if d == nil {
		d = &delivered{}
		s.pods[uid] = d
	}
	return d
}

// failure returns why nothing can be delivered.
func (s *StatusSink) failure(ctx context.Context, pod *corev1.Pod) error {
	s.mu.Lock()
	fail := s.fail
	s.mu.Unlock()
	if err := ctx.Err(); err != nil || fail == nil {
		return err
	}
	return fail(pod)
}

// Fail makes both methods return what fail returns, where that is not nil. It may block. A nil function ends it.
func (s *StatusSink) Fail(fail func(pod *corev1.Pod) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = fail
}

// Forget makes the sink answer [podmill.ErrGone] for a pod, as if someone else had deleted it.
func (s *StatusSink) Forget(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of(uid).gone = true
}

// Status returns the newest status of a pod, nil if there is none.
func (s *StatusSink) Status(uid types.UID) *corev1.PodStatus {
	all := s.History(uid)
	if len(all) == 0 {
		return nil
	}
	return &all[len(all)-1]
}

// History returns every status of a pod that changed something, the newest last.
func (s *StatusSink) History(uid types.UID) []corev1.PodStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.pods[uid]; d != nil {
		return slices.Clone(d.statuses)
	}
	return nil
}

// Finished reports that the pod was said to be done.
func (s *StatusSink) Finished(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.pods[uid]
	return d != nil && d.finished
}

package podmilltest

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// PodSource is a [podmill.PodSource] that delivers what a test gives it. It holds the whole set, so that each Run begins with a
// Replace, and it is not synced before the first Replace.
type PodSource struct {
	name string

	mu      sync.Mutex
	pods    []*corev1.Pod
	synced  bool
	waiting []podmill.PodUpdate // not delivered yet
	fail    error
	wake    chan struct{}
}

var _ podmill.PodSource = (*PodSource)(nil)

// NewPodSource returns a source that is not synced.
func NewPodSource(name string) *PodSource {
	return &PodSource{name: name, wake: make(chan struct{}, 1)}
}

// Name implements [podmill.PodSource].
func (s *PodSource) Name() string { return s.name }

// Replace makes pods the whole set.
func (s *PodSource) Replace(pods ...*corev1.Pod) {
	s.change(podmill.PodUpdate{Op: podmill.ReplacePods, Pods: pods})
}

// Upsert adds pods, or replaces those of the same UID.
func (s *PodSource) Upsert(pods ...*corev1.Pod) {
	s.change(podmill.PodUpdate{Op: podmill.UpsertPods, Pods: pods})
}

// Delete takes pods away, by their UIDs.
func (s *PodSource) Delete(pods ...*corev1.Pod) {
	s.change(podmill.PodUpdate{Op: podmill.DeletePods, Pods: pods})
}

// Fail makes Run return err.
func (s *PodSource) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
	s.signal()
}

func (s *PodSource) change(u podmill.PodUpdate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.Op == podmill.ReplacePods {
		s.pods, s.synced = nil, true
	}
	uids := map[types.UID]bool{}
	for _, pod := range u.Pods {
		uids[pod.UID] = true
	}
	s.pods = slices.DeleteFunc(s.pods, func(pod *corev1.Pod) bool { return uids[pod.UID] })
	if u.Op != podmill.DeletePods {
		s.pods = append(s.pods, u.Pods...)
	}
	if s.synced {
		s.waiting = append(s.waiting, u)
		s.signal()
	}
}

func (s *PodSource) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run implements [podmill.PodSource]. It runs once at a time.
func (s *PodSource) Run(ctx context.Context, deliver func(podmill.PodUpdate)) error {
	s.begin()
	for {
		updates, err := s.take()
		for _, u := range updates {
			if ctx.Err() == nil {
				deliver(u)
			}
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.wake:
		}
	}
}

// begin makes what is known now the first delivery.
func (s *PodSource) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.synced {
		s.waiting = []podmill.PodUpdate{{Op: podmill.ReplacePods, Pods: slices.Clone(s.pods)}}
	}
}

func (s *PodSource) take() ([]podmill.PodUpdate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	updates, err := s.waiting, s.fail
	s.waiting, s.fail = nil, nil
	return updates, err
}

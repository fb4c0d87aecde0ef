package main

import (
	"context"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// Source hands an agent the pods that a [Provider] is told of. However much is said of a pod before the agent asks, it hears the newest.
type Source struct {
	wake chan struct{} // holds one token when there is something to deliver

	mu      sync.Mutex
	pods    map[types.UID]*corev1.Pod
	changed map[types.UID]bool
	synced  bool // pods are all that there are
	told    bool // the agent knows that
}

var (
	_ podmill.PodSource = (*Source)(nil)
	_ Workers           = (*Source)(nil)
)

// NewSource returns a source without pods.
func NewSource() *Source {
	return &Source{wake: make(chan struct{}, 1), pods: map[types.UID]*corev1.Pod{}, changed: map[types.UID]bool{}}
}

// Name implements [podmill.PodSource].
func (s *Source) Name() string { return "api" }

// Update has the agent run a pod.
func (s *Source) Update(pod *corev1.Pod) {
	s.change(func() { s.pods[pod.UID], s.changed[pod.UID] = pod, true })
}

// Remove has it end a pod.
func (s *Source) Remove(pod types.UID) {
	s.change(func() {
		delete(s.pods, pod)
		s.changed[pod] = true
	})
}

// Synced says that the API's pods are all here: whatever else the runtime has of an earlier process may be taken down.
func (s *Source) Synced() { s.change(func() { s.synced = true }) }

func (s *Source) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run implements [podmill.PodSource].
func (s *Source) Run(ctx context.Context, deliver func(podmill.PodUpdate)) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.wake:
		}
		for _, update := range s.take() {
			deliver(update)
		}
	}
}

// take returns what the agent has not heard yet.
func (s *Source) take() []podmill.PodUpdate {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer clear(s.changed)
	if s.synced && !s.told {
		s.told = true
		return []podmill.PodUpdate{{Op: podmill.ReplacePods, Pods: slices.Collect(maps.Values(s.pods))}}
	}
	upserts, deletes := podmill.PodUpdate{Op: podmill.UpsertPods}, podmill.PodUpdate{Op: podmill.DeletePods}
	for uid := range s.changed {
		if pod := s.pods[uid]; pod != nil {
			upserts.Pods = append(upserts.Pods, pod)
		} else {
			deletes.Pods = append(deletes.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}})
		}
	}
	return slices.DeleteFunc([]podmill.PodUpdate{deletes, upserts}, func(u podmill.PodUpdate) bool { return len(u.Pods) == 0 })
}

package syncpod

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/lifecycle"
)

// keptSizes is what is kept of resources that have changed since containers were started. What one was started with it tells itself.
type keptSizes struct {
	// Allocated is what containers were allocated, by name.
	Allocated map[string]corev1.ResourceRequirements `json:"allocated,omitempty"`
	// Resized is what instances were given while they ran, by the names of their containers.
	Resized map[string]keptSize `json:"resized,omitempty"`
	// Resizing says that not all have what they were allocated, or the pod's cgroup does not fit yet, and Generation whose spec that was.
	Resizing   bool  `json:"resizing,omitempty"`
	Generation int64 `json:"generation,omitempty"`
	// Changes is how often any of this has changed.
	Changes uint64 `json:"-"`
}

type keptSize struct {
	ID        string                      `json:"id"`
	Resources corev1.ResourceRequirements `json:"resources"`
}

// allocated returns what a container was allocated: what is kept or, where nothing is, what its newest instance was started with.
func (k *keeper) allocated(container string, seen *podmill.RuntimePod) (r corev1.ResourceRequirements, ok bool) {
	k.mu.Lock()
	r, ok = k.Allocated[container]
	k.mu.Unlock()
	if newest := seen.Container(container); !ok && newest != nil {
		return startedWith(newest)
	}
	return r, ok
}

// allocate keeps that a pod was allocated what it asks for, and that a resize is under way.
func (k *keeper) allocate(pod *corev1.Pod) error {
	return k.change(func(kept *kept) {
		kept.Allocated = map[string]corev1.ResourceRequirements{}
		for c, kind := range lifecycle.Containers(pod) {
			if kind != lifecycle.Init {
				kept.Allocated[c.Name] = c.Resources
			}
		}
		kept.Resizing, kept.Generation = true, pod.Generation
		kept.Changes++
	})
}

// resized keeps what an instance of a container was given.
func (k *keeper) resized(container, id string, r corev1.ResourceRequirements) error {
	return k.change(func(kept *kept) {
		all := maps.Clone(kept.Resized) // it may have been handed out
		if all == nil {
			all = map[string]keptSize{}
		}
		all[container] = keptSize{ID: id, Resources: r}
		kept.Resized = all
		kept.Changes++
	})
}

// fits keeps that the resize is over.
func (k *keeper) fits() error {
	return k.change(func(kept *kept) {
		kept.Resizing, kept.Generation = false, 0
		kept.Changes++
	})
}

// actual returns whether a resize is under way and, if so, what the running containers have, by ID.
func (k *keeper) actual(seen *podmill.RuntimePod) (resizing bool, all map[string]corev1.ResourceRequirements) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.Resizing {
		return false, nil
	}
	all = map[string]corev1.ResourceRequirements{}
	for i := range seen.Containers {
		c := &seen.Containers[i]
		if c.State != podmill.StateRunning {
			continue
		}
		if given := k.Resized[c.Name]; given.ID == c.ID {
			all[c.ID] = given.Resources
		} else if r, ok := startedWith(c); ok {
			all[c.ID] = r
		}
	}
	return true, all
}

// progress returns how far a pod's resize has come, nil if there has been none.
func (k *keeper) progress(s *sizing) *podmill.ResizeProgress {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s.reason == "" && k.Allocated == nil {
		return nil
	}
	p := &podmill.ResizeProgress{
		Pending: s.reason, PendingMessage: s.message, Error: s.unresized, InProgress: k.Resizing, Generation: k.Generation, Allocated: k.Allocated,
	}
	for _, given := range k.Resized {
		if p.Actual == nil {
			p.Actual = make(map[string]corev1.ResourceRequirements, len(k.Resized))
		}
		p.Actual[given.ID] = given.Resources
	}
	return p
}

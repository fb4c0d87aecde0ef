package syncpod

import (
	corev1 "k8s.io/api/core/v1"
)

// withhold takes out of a plan whatever would start something of a pod that cannot be had here as its spec wants it, and says why the containers
// wait. What runs of the pod already runs on, and is stopped when the plan says so. It reports whether it had to.
func (s *Syncer) withhold(pod *corev1.Pod, m *memory, a *Actions) bool {
	if s.refused == nil || a.RunSandbox == nil && len(a.Start) == 0 {
		return false
	}
	why := s.refused(pod)
	if why != m.refused && why != "" {
		s.event(pod, "", corev1.EventTypeWarning, eventFailed, "Error: "+why)
	}
	if m.refused = why; why == "" {
		return false
	}
	waiting := make(map[string]corev1.ContainerStateWaiting, len(a.Start)+len(a.Waiting))
	for name, w := range a.Waiting {
		waiting[name] = w
	}
	for i := range a.Start {
		waiting[a.Start[i].Container.Name] = corev1.ContainerStateWaiting{Reason: reasonConfigError, Message: why}
	}
	a.Waiting, a.Start, a.RunSandbox = waiting, nil, nil
	return true
}

package node

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// SetRuntime says what the node's container runtime is and can do.
func (s *State) SetRuntime(r *podmill.RuntimeStatus) {
	s.Info.ContainerRuntimeVersion = r.Name + "://" + r.Version
	s.RuntimeHandlers = nil
	for _, handler := range r.Handlers {
		s.RuntimeHandlers = append(s.RuntimeHandlers, corev1.NodeRuntimeHandler{Name: handler.Name, Features: &corev1.NodeRuntimeHandlerFeatures{
			RecursiveReadOnlyMounts: &handler.RecursiveReadOnlyMounts, UserNamespaces: &handler.UserNamespaces,
		}})
	}
	slices.SortFunc(s.RuntimeHandlers, func(a, b corev1.NodeRuntimeHandler) int { return cmp.Compare(a.Name, b.Name) })
	s.Features = &corev1.NodeFeatures{SupplementalGroupsPolicy: &r.SupplementalGroupsPolicy}
}

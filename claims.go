package podmill

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// Claims gives the PersistentVolumeClaims that pods refer to, and what they are bound to. Binding them is not its business: on a cluster the control plane does. What
// it returns is shared and read-only.
type Claims interface {
	// Claim returns a PersistentVolumeClaim, ErrNotFound if there is none of that name, and any other error if it cannot tell.
	Claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error)
	// PersistentVolume returns a PersistentVolume, ErrNotFound if there is none of that name, and any other error if it cannot tell.
	PersistentVolume(ctx context.Context, name string) (*corev1.PersistentVolume, error)
}

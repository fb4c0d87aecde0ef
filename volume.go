package podmill

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// VolumeMounter makes a pod's volumes ready and takes them away again.
//
// Calls for one pod come one after another; calls for different pods come concurrently.
type VolumeMounter interface {
	// MountVolumes blocks until every volume that a container of the pod mounts is ready, or ctx ends, and returns them by name. It is idempotent, and is
	// called again while the pod runs, to bring volumes up to date: one whose content has not changed is not touched. The error names
	// every volume that is not ready and why; those that are stay ready.
	MountVolumes(ctx context.Context, pod *corev1.Pod) (map[string]Volume, error)
	// UnmountVolumes takes away all that MountVolumes made for a pod, by this process or one before it. It is idempotent. It is called
	// when no container of the pod runs, and works by what is on disk alone. After it, MountVolumes for that UID fails
	// until the pod has been unmounted completely.
	UnmountVolumes(ctx context.Context, pod types.UID) error
}

// Volume is a volume that is ready: a path of the host or an image.
type Volume struct {
	HostPath       string
	Image          string // of an image volume, as [ImageStore.PullImage] gave it
	ReadOnly       bool
	SELinuxRelabel bool
	// Block says that HostPath is a block device.
	Block bool
	// Renew is when MountVolumes has to be called again though nothing has happened, because the volume holds something that ends, such as a token. Zero is never, and so is
	// what has passed.
	Renew time.Time
}

// SubPathMounter is an optional interface of a [VolumeMounter] that can give a container a part of a volume. It is found by type assertion.
type SubPathMounter interface {
	// MountSubPath returns a path of the host at which the runtime finds what is at a path in one of a pod's volumes, and nothing else, whatever is done to
	// the volume meanwhile. Where nothing is there, a directory is made. Links are followed within the volume; one that leads out of it is an error.
	//
	// It is called after MountVolumes, before each start of a container, and is idempotent. What an earlier instance of the container had is replaced where
	// the volume now has something else at that path. [VolumeMounter.UnmountVolumes] undoes it.
	MountSubPath(ctx context.Context, pod *corev1.Pod, s SubPath) (hostPath string, err error)
}

// SubPath is the part of a volume that one mount of a container has.
type SubPath struct {
	Container string
	Index     int // of the mount among the container's volumeMounts
	Volume    string
	Path      string // relative to the volume, with its variables put in
}

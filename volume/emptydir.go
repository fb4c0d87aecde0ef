package volume

import (
	"context"
	"fmt"
	"io/fs"
	"os"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/resources"
	"github.com/podmill/podmill/volume/internal/hostdir"
)

// emptyDir makes scratch space, on disk or in memory.
type emptyDir struct {
	allocatable func() corev1.ResourceList
}

func (emptyDir) Name() string                  { return "kubernetes.io/empty-dir" }
func (emptyDir) Handles(v *corev1.Volume) bool { return v.EmptyDir != nil }

// SetUp makes the directory once. From then on it belongs to the containers, who may change even its mode.
func (e emptyDir) SetUp(_ context.Context, m Mount) (podmill.Volume, error) {
	var memory *hostdir.Tmpfs
	switch medium := m.Volume.EmptyDir.Medium; medium {
	case corev1.StorageMediumDefault:
	case corev1.StorageMediumMemory:
		memory = &hostdir.Tmpfs{Size: memorySize(m.Pod, m.Volume.EmptyDir, e.allocatable())}
	default:
		return podmill.Volume{}, unsupportedError(fmt.Sprintf("emptyDir medium %q is not supported", medium))
	}
	dir, err := makeDir(m, 0o777, memory)
	if err != nil {
		return podmill.Volume{}, err
	}
	return podmill.Volume{HostPath: m.Path(), SELinuxRelabel: true}, dir.Close()
}

func (emptyDir) TearDown(_ context.Context, p Place) error { return p.remove() }

// makeDir makes the directory of a volume, mounts a tmpfs there where one is given, and opens it. The pod's fsGroup gets the directory and
// all that will be made in it.
func makeDir(m Mount, mode fs.FileMode, memory *hostdir.Tmpfs) (*os.Root, error) {
	parent, err := m.parent(true)
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	mode, gid := owned(m.Pod, mode)
	if memory == nil {
		err = hostdir.Make(parent, m.Name, mode, gid)
	} else {
		memory.Mode, memory.GID = mode, gid
		err = mountOnce(parent, m.Name, *memory)
	}
	if err != nil {
		return nil, err
	}
	return hostdir.Enter(parent, m.Name)
}

func mountOnce(parent *os.Root, name string, memory hostdir.Tmpfs) error {
	if err := hostdir.Make(parent, name, dirMode, -1); err != nil {
		return err
	}
	if mounted, err := hostdir.IsMount(parent, name); err != nil || mounted {
		return err
	}
	return hostdir.MountTmpfs(parent, name, memory)
}

// owned returns the mode and group of a volume's directory. A pod with an fsGroup has a group that the directory, and by the setgid bit all in it,
// belongs to; -1 is the process's own.
func owned(pod *corev1.Pod, mode fs.FileMode) (fs.FileMode, int) {
	if gid := fsGroup(pod); gid != nil {
		return mode | fs.ModeSetgid, int(*gid)
	}
	return mode, -1
}

func fsGroup(pod *corev1.Pod) *int64 {
	if pod.Spec.SecurityContext == nil {
		return nil
	}
	return pod.Spec.SecurityContext.FSGroup
}

// memorySize returns the size of an emptyDir in memory, as the kubelet chooses it: the least of its own limit, the pod's memory limit and what
// the node has for pods. What is written there counts as memory of the pod, so that more would be of no use. 0 is no limit.
func memorySize(pod *corev1.Pod, source *corev1.EmptyDirVolumeSource, node corev1.ResourceList) int64 {
	var size int64
	bound := func(limit int64) {
		if limit > 0 && (size == 0 || limit < size) {
			size = limit
		}
	}
	if source.SizeLimit != nil {
		bound(source.SizeLimit.Value())
	}
	bound(resources.MemoryLimit(pod))
	bound(node.Memory().Value())
	return size
}

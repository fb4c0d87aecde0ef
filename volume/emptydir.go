package volume

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/lifecycle"
	"github.com/podmill/podmill/internal/resources"
	"github.com/podmill/podmill/volume/internal/hostdir"
)

// emptyDir makes scratch space: on disk, in memory or in huge pages of it.
type emptyDir struct {
	allocatable func() corev1.ResourceList
}

func (emptyDir) Name() string                  { return "kubernetes.io/empty-dir" }
func (emptyDir) Handles(v *corev1.Volume) bool { return v.EmptyDir != nil }

// SetUp makes the directory once. From then on it belongs to the containers, who may change even its mode.
func (e emptyDir) SetUp(_ context.Context, m Mount) (podmill.Volume, error) {
	var memory *hostdir.Tmpfs
	switch medium := m.Volume.EmptyDir.Medium; {
	case medium == corev1.StorageMediumDefault:
	case medium == corev1.StorageMediumMemory:
		memory = &hostdir.Tmpfs{Size: memorySize(m.Pod, m.Volume.EmptyDir, e.allocatable())}
	case strings.HasPrefix(string(medium), string(corev1.StorageMediumHugePages)):
		size, err := pageSize(m.Pod, medium)
		if err != nil {
			return podmill.Volume{}, err
		}
		memory = &hostdir.Tmpfs{PageSize: size}
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
	if err == nil {
		err = hostdir.CheckMemory(parent, m.Name) // else it would be somebody's data that is written over
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

// pageSize returns, in bytes, the size of the huge pages that a medium is of. The pod asks for pages of that size, or it could not use them; the medium HugePages
// is of the one size that it asks for.
func pageSize(pod *corev1.Pod, medium corev1.StorageMedium) (int64, error) {
	asked := map[int64]bool{}
	for c := range lifecycle.Containers(pod) {
		for name := range c.Resources.Requests {
			if size, ok := strings.CutPrefix(string(name), corev1.ResourceHugePagesPrefix); ok {
				q, err := resource.ParseQuantity(size)
				if err != nil {
					return 0, fmt.Errorf("resource %s: %w", name, err)
				}
				asked[q.Value()] = true
			}
		}
	}
	if medium == corev1.StorageMediumHugePages {
		if len(asked) != 1 {
			return 0, unsupportedError(fmt.Sprintf("medium %s needs containers that request huge pages of one size, not of %d", medium, len(asked)))
		}
		return slices.Collect(maps.Keys(asked))[0], nil
	}
	q, err := resource.ParseQuantity(strings.TrimPrefix(string(medium), string(corev1.StorageMediumHugePagesPrefix)))
	if err != nil {
		return 0, unsupportedError(fmt.Sprintf("emptyDir medium %q: %v", medium, err))
	}
	if !asked[q.Value()] {
		return 0, unsupportedError(fmt.Sprintf("medium %s needs a container that requests huge pages of that size", medium))
	}
	return q.Value(), nil
}

package podmilltest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// VolumeMounter is a [podmill.VolumeMounter] that mounts in memory: each volume's path is below a root, and nothing is there.
type VolumeMounter struct {
	root string

	mu      sync.Mutex
	mounted map[types.UID]map[string]podmill.Volume
	halfway map[types.UID]bool // unmounting has begun and failed
	fail    func(pod types.UID, volume string) error
}

var _ podmill.VolumeMounter = (*VolumeMounter)(nil)

// NewVolumeMounter returns a mounter of volumes whose paths are root/UID/NAME.
func NewVolumeMounter(root string) *VolumeMounter {
	return &VolumeMounter{root: root, mounted: map[types.UID]map[string]podmill.Volume{}, halfway: map[types.UID]bool{}}
}

// Fail makes mounting a volume return what fail returns, where that is not nil; for unmounting a pod it is called with an empty
// name. A nil function ends it.
func (m *VolumeMounter) Fail(fail func(pod types.UID, volume string) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = fail
}

// MountVolumes implements [podmill.VolumeMounter].
func (m *VolumeMounter) MountVolumes(ctx context.Context, pod *corev1.Pod) (map[string]podmill.Volume, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if m.halfway[pod.UID] {
		return nil, fmt.Errorf("mount volumes of pod %s: they are being unmounted", podmill.RefOf(pod))
	}
	mounted := m.mounted[pod.UID]
	if mounted == nil {
		mounted = map[string]podmill.Volume{}
		m.mounted[pod.UID] = mounted
	}
	var errs []error
	for i := range pod.Spec.Volumes {
		name := pod.Spec.Volumes[i].Name
		if err := m.failure(pod.UID, name); err != nil {
			errs = append(errs, fmt.Errorf("volume %s: %w", name, err))
			continue
		}
		mounted[name] = podmill.Volume{HostPath: path.Join(m.root, string(pod.UID), name)}
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("mount volumes of pod %s: %w", podmill.RefOf(pod), errors.Join(errs...))
	}
	return maps.Clone(mounted), nil
}

// UnmountVolumes implements [podmill.VolumeMounter].
func (m *VolumeMounter) UnmountVolumes(ctx context.Context, pod types.UID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := ctx.Err()
	if err == nil {
		err = m.failure(pod, "")
		m.halfway[pod] = err != nil
	}
	if err != nil {
		return fmt.Errorf("unmount volumes of pod %s: %w", pod, err)
	}
	delete(m.mounted, pod)
	delete(m.halfway, pod)
	return nil
}

func (m *VolumeMounter) failure(pod types.UID, volume string) error {
	if m.fail == nil {
		return nil
	}
	return m.fail(pod, volume)
}

// Mounted returns the names of a pod's mounted volumes, in order.
func (m *VolumeMounter) Mounted(pod types.UID) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.mounted[pod]))
}

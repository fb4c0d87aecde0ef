package podmilltest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
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

var (
	_ podmill.VolumeMounter  = (*VolumeMounter)(nil)
	_ podmill.SubPathMounter = (*VolumeMounter)(nil)
)

// NewVolumeMounter returns a mounter of volumes whose paths are root/UID/NAME.
func NewVolumeMounter(root string) *VolumeMounter {
	return &VolumeMounter{root: root, mounted: map[types.UID]map[string]podmill.Volume{}, halfway: map[types.UID]bool{}}
}

// Fail makes mounting a volume return what fail returns, where that is not nil; for unmounting a pod it is called with an empty
// name. It may block. A nil function ends it.
func (m *VolumeMounter) Fail(fail func(pod types.UID, volume string) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = fail
}

// MountVolumes implements [podmill.VolumeMounter].
func (m *VolumeMounter) MountVolumes(ctx context.Context, pod *corev1.Pod) (map[string]podmill.Volume, error) {
	var errs []error
	var ready []string
	for i := range pod.Spec.Volumes {
		name := pod.Spec.Volumes[i].Name
		if err := m.failure(ctx, pod.UID, name); err != nil {
			errs = append(errs, fmt.Errorf("volume %s: %w", name, err))
		} else {
			ready = append(ready, name)
		}
	}
	volumes, err := m.mount(pod.UID, ready)
	if err = errors.Join(append(errs, err)...); err != nil {
		return nil, fmt.Errorf("mount volumes of pod %s: %w", podmill.RefOf(pod), err)
	}
	return volumes, nil
}

// mount mounts some of a pod's volumes, and returns all that are.
func (m *VolumeMounter) mount(pod types.UID, names []string) (map[string]podmill.Volume, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.halfway[pod] {
		return nil, errors.New("they are being unmounted")
	}
	if m.mounted[pod] == nil {
		m.mounted[pod] = map[string]podmill.Volume{}
	}
	for _, name := range names {
		m.mounted[pod][name] = podmill.Volume{HostPath: path.Join(m.root, string(pod), name)}
	}
	return maps.Clone(m.mounted[pod]), nil
}

// MountSubPath implements [podmill.SubPathMounter]: the path is that of the volume and, below it, of the part.
func (m *VolumeMounter) MountSubPath(ctx context.Context, pod *corev1.Pod, s podmill.SubPath) (string, error) {
	err := m.failure(ctx, pod.UID, s.Volume)
	m.mu.Lock()
	defer m.mu.Unlock()
	volume, ok := m.mounted[pod.UID][s.Volume]
	switch {
	case err != nil:
	case !ok:
		err = errors.New("the volume is not mounted")
	case !filepath.IsLocal(s.Path):
		err = errors.New("the path leads out of the volume")
	default:
		return path.Join(volume.HostPath, s.Path), nil
	}
	return "", fmt.Errorf("mount subPath %q of volume %s of pod %s: %w", s.Path, s.Volume, podmill.RefOf(pod), err)
}

// UnmountVolumes implements [podmill.VolumeMounter].
func (m *VolumeMounter) UnmountVolumes(ctx context.Context, pod types.UID) error {
	m.mu.Lock()
	m.halfway[pod] = true
	m.mu.Unlock()
	if err := m.failure(ctx, pod, ""); err != nil {
		return fmt.Errorf("unmount volumes of pod %s: %w", pod, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.mounted, pod)
	delete(m.halfway, pod)
	return nil
}

func (m *VolumeMounter) failure(ctx context.Context, pod types.UID, volume string) error {
	m.mu.Lock()
	fail := m.fail
	m.mu.Unlock()
	if err := ctx.Err(); err != nil || fail == nil {
		return err
	}
	return fail(pod, volume)
}

// Mounted returns the names of a pod's mounted volumes, in order.
func (m *VolumeMounter) Mounted(pod types.UID) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.mounted[pod]))
}

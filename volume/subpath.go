package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/filename"
	"github.com/podmill/podmill/volume/internal/hostdir"
)

var _ podmill.SubPathMounter = (*Manager)(nil)

// MountSubPath implements [podmill.SubPathMounter]: it binds what it has opened in the volume to a place of the container's own, which the runtime can be told of by
// its path, for nobody in a container gets there. As in the kubelet a container that runs goes on seeing what it was started with: a subPath of a ConfigMap is
// not brought up to date before the container is started anew. It needs Linux, and root.
func (m *Manager) MountSubPath(ctx context.Context, pod *corev1.Pod, s podmill.SubPath) (string, error) {
	state, err := m.ledger.mount(ctx, pod.UID)
	var volume readyVolume
	if err == nil {
		defer state.done()
		volume = state.ready[s.Volume]
		err = m.bindPart(volume, s)
	}
	if err != nil {
		return "", fmt.Errorf("mount subPath %q of volume %q for container %s of pod %s: %w", s.Path, s.Volume, s.Container, podmill.RefOf(pod), err)
	}
	return filepath.Join(append([]string{m.pods}, partPlace(volume, s)...)...), nil
}

// partPlace returns the names that lead from the directory of all pods to where a part is mounted.
func partPlace(v readyVolume, s podmill.SubPath) []string {
	return []string{string(v.place.UID), subPathsDir, v.place.Name, s.Container, strconv.Itoa(s.Index)}
}

func (m *Manager) bindPart(volume readyVolume, s podmill.SubPath) error {
	switch {
	case volume.place == Place{}:
		return errors.New("the volume is not ready")
	case volume.HostPath == "" || volume.Block:
		return unsupportedError("the volume has no directory")
	case !filename.Valid(s.Container):
		return fmt.Errorf("%q is no name for a directory", s.Container)
	}
	dir, err := openVolume(volume)
	if err != nil {
		return err
	}
	defer dir.Close()
	part, err := hostdir.OpenPart(dir, s.Path)
	if err != nil {
		return err
	}
	defer part.Close()
	names := partPlace(volume, s)
	parent, err := enter(m.pods, true, names[:len(names)-1]...)
	if err != nil {
		return err
	}
	defer parent.Close()
	return hostdir.Bind(part, parent, names[len(names)-1])
}

// openVolume opens the directory of a volume. One that lies elsewhere, as a hostPath does, gets an empty directory among the pod's volumes: by that alone will an
// agent that knows nothing else know whose the parts are.
func openVolume(volume readyVolume) (*os.Root, error) {
	parent, err := volume.place.parent(true)
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	if volume.HostPath == volume.place.Path() {
		return hostdir.Enter(parent, volume.place.Name)
	}
	if err := hostdir.Make(parent, volume.place.Name, dirMode, -1); err != nil {
		return nil, err
	}
	return os.OpenRoot(volume.HostPath)
}

// removePart unmounts a part of a volume, by its path in the pod's directory.
func (m *Manager) removePart(uid types.UID, part string) error {
	names := append([]string{string(uid)}, strings.Split(part, "/")...)
	dir, err := enter(m.pods, false, names[:len(names)-1]...)
	if err != nil {
		return err
	}
	defer dir.Close()
	return hostdir.Unbind(dir, names[len(names)-1])
}

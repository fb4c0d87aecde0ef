package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/volume/internal/hostdir"
)

// local is a directory or a block device of one node that is a PersistentVolume. It is there before the pod and after it.
type local struct{}

func (local) Name() string                                       { return "kubernetes.io/local-volume" }
func (local) Handles(*corev1.Volume) bool                        { return false }
func (local) HandlesPersistent(pv *corev1.PersistentVolume) bool { return pv.Spec.Local != nil }

// SetUp binds the directory to a place of the pod's, when it has given the pod's fsGroup what is in it: an agent that is interrupted meanwhile begins anew.
func (local) SetUp(ctx context.Context, m Mount) (podmill.Volume, error) {
	path := m.PV.Spec.Local.Path
	if !filepath.IsAbs(path) || slices.Contains(strings.Split(path, "/"), "..") {
		return podmill.Volume{}, fmt.Errorf("invalid local path %q: must be absolute and not contain '..'", path)
	}
	if isBlock(m.PV) {
		device, err := blockDevice(path)
		return podmill.Volume{HostPath: device, Block: true}, err
	}
	if _, err := blockDevice(path); err == nil {
		return podmill.Volume{}, unsupportedError(path + " is a block device: local volumes of volumeMode Filesystem have to be directories")
	}
	dir, err := os.OpenRoot(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return podmill.Volume{}, fmt.Errorf("path %q does not exist", path)
	case err != nil:
		return podmill.Volume{}, fmt.Errorf("a local volume of volumeMode Filesystem is a directory: %w", err)
	}
	defer dir.Close()
	return podmill.Volume{HostPath: m.Path(), SELinuxRelabel: !m.ReadOnly}, bindLocal(ctx, dir, m)
}

func bindLocal(ctx context.Context, dir *os.Root, m Mount) error {
	parent, err := m.parent(true)
	if err != nil {
		return err
	}
	defer parent.Close()
	part, err := hostdir.OpenPart(dir, ".")
	if err != nil {
		return err
	}
	defer part.Close()
	if bound, err := hostdir.IsBound(part, parent, m.Name); err != nil || bound {
		return err
	}
	if gid := fsGroup(m.Pod); gid != nil && !m.ReadOnly {
		if err := hostdir.ChangeGroup(ctx, dir, int(*gid), onRootMismatch(m.Pod)); err != nil {
			return fmt.Errorf("applyFSGroup failed for vol %s: %w", m.PV.Name, err)
		}
	}
	return hostdir.Bind(part, parent, m.Name)
}

// onRootMismatch reports that what is in a volume need not be looked at where its directory has the right group already.
func onRootMismatch(pod *corev1.Pod) bool {
	policy := pod.Spec.SecurityContext.FSGroupChangePolicy
	return policy != nil && *policy == corev1.FSGroupChangeOnRootMismatch
}

// blockDevice returns where a block device really is.
func blockDevice(path string) (string, error) {
	device, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(device)
	if err == nil && info.Mode().Type() != fs.ModeDevice {
		err = fmt.Errorf("%s is no block device, it's a %s", path, typeOf(info.Mode()))
	}
	return device, err
}

// TearDown unmounts the directory from the pod's place. What is in it stays.
func (local) TearDown(_ context.Context, p Place) error {
	parent, err := p.parent(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(hostdir.Unbind(parent, p.Name), parent.Close())
}

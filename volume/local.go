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
type local struct {
	warn  func(pod *corev1.Pod, reason, message string)
	turns *turns // of pods at a directory: between a look whether others have it and a bind, none comes
}

func (local) Name() string                                       { return "kubernetes.io/local-volume" }
func (local) Handles(*corev1.Volume) bool                        { return false }
func (local) HandlesPersistent(pv *corev1.PersistentVolume) bool { return pv.Spec.Local != nil }

// SetUp binds the directory to a place of the pod's, when it has given the pod's fsGroup what is in it: an agent that is interrupted meanwhile begins anew.
func (l local) SetUp(ctx context.Context, m Mount) (podmill.Volume, error) {
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
	over, err := l.turns.take(ctx, filepath.Clean(path))
	if err != nil {
		return podmill.Volume{}, fmt.Errorf("it is being made ready for another pod: %w", err)
	}
	defer over()
	return podmill.Volume{HostPath: m.Path(), SELinuxRelabel: !m.ReadOnly}, l.bind(ctx, dir, m)
}

func (l local) bind(ctx context.Context, dir *os.Root, m Mount) error {
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
		if err := l.give(ctx, dir, part, m, int(*gid)); err != nil {
			return fmt.Errorf("applyFSGroup failed for vol %s: %w", m.PV.Name, err)
		}
	}
	return hostdir.Bind(part, parent, m.Name)
}

// give gives what is in the directory to a group, unless another pod has it: that would take it away from that one. The kubelet's rule and words.
func (l local) give(ctx context.Context, dir *os.Root, part *os.File, m Mount, gid int) error {
	shared, err := isShared(part, m)
	if err != nil {
		return err
	}
	if !shared {
		return hostdir.ChangeGroup(ctx, dir, gid, onRootMismatch(m.Pod))
	}
	is, err := hostdir.GroupOf(dir)
	if err == nil && is != gid {
		l.warn(m.Pod, "AlreadyMountedVolume", fmt.Sprintf("The requested fsGroup is %d, but the volume %s has GID %d. The volume may not be shareable.", gid, m.PV.Name, is))
	}
	return err
}

// isShared reports whether another pod has a volume: one of whose places it is bound to. What is on disk says so, and thus also of pods of an agent before this one.
func isShared(part *os.File, m Mount) (bool, error) {
	pods, err := os.ReadDir(m.pods)
	if err != nil {
		return false, err
	}
	for _, pod := range pods {
		if pod.Name() == string(m.UID) {
			continue
		}
		parent, err := enter(m.pods, false, pod.Name(), volumesDir, escape(m.Plugin))
		if err != nil {
			continue // it has no local volume, or something strange that is no volume
		}
		bound, err := hostdir.IsBound(part, parent, m.Name)
		_ = parent.Close() // nothing was written through it
		if err != nil || bound {
			return bound, err
		}
	}
	return false, nil
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

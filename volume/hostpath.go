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
)

// hostPath is a path of the host. It is there before the pod and after it.
type hostPath struct{}

func (hostPath) Name() string                  { return "kubernetes.io/host-path" }
func (hostPath) Handles(v *corev1.Volume) bool { return v.HostPath != nil }

func (hostPath) HandlesPersistent(pv *corev1.PersistentVolume) bool { return pv.Spec.HostPath != nil }

func (hostPath) SetUp(_ context.Context, m Mount) (podmill.Volume, error) {
	source := m.Volume.HostPath
	if m.PV != nil {
		source = m.PV.Spec.HostPath
	}
	path, kind := source.Path, corev1.HostPathUnset
	if t := source.Type; t != nil {
		kind = *t
	}
	if slices.Contains(strings.Split(filepath.ToSlash(path), "/"), "..") {
		return podmill.Volume{}, fmt.Errorf("invalid HostPath %q: must not contain '..'", path)
	}
	if err := makeHostPath(path, kind); err != nil {
		return podmill.Volume{}, err
	}
	if err := checkHostPath(path, kind); err != nil {
		return podmill.Volume{}, err
	}
	return podmill.Volume{HostPath: path}, nil
}

// TearDown takes nothing of the host away. Such a volume has no directory of its own; one that is there all the same goes if it is empty.
func (hostPath) TearDown(_ context.Context, p Place) error {
	parent, err := p.parent(false)
	if err == nil {
		err = errors.Join(parent.Remove(p.Name), parent.Close())
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// makeHostPath makes what is not there and may be made.
func makeHostPath(path string, kind corev1.HostPathType) error {
	if kind != corev1.HostPathDirectoryOrCreate && kind != corev1.HostPathFileOrCreate {
		return nil
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if kind == corev1.HostPathDirectoryOrCreate {
		return os.MkdirAll(path, 0o755)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// checkHostPath checks what is there. Without a type anything will do, also nothing.
func checkHostPath(path string, kind corev1.HostPathType) error {
	var what string
	switch kind {
	case corev1.HostPathUnset:
		return nil
	case corev1.HostPathDirectory, corev1.HostPathDirectoryOrCreate:
		what, kind = "directory", corev1.HostPathDirectory
	case corev1.HostPathFile, corev1.HostPathFileOrCreate:
		what, kind = "file", corev1.HostPathFile
	case corev1.HostPathSocket:
		what = "socket file"
	case corev1.HostPathCharDev:
		what = "character device"
	case corev1.HostPathBlockDev:
		what = "block device"
	default:
		return fmt.Errorf("%s is an invalid volume type", kind)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("hostPath %s doesn't exist", path)
	case err != nil:
		return fmt.Errorf("hostPath type check failed, %s is not a %s, unable to determine its type: %w", path, what, err)
	}
	if is := typeOf(info.Mode()); is != kind {
		return fmt.Errorf("hostPath type check failed: %s is not a %s, it's a %s", path, what, is)
	}
	return nil
}

func typeOf(m fs.FileMode) corev1.HostPathType {
	switch m.Type() {
	case 0:
		return corev1.HostPathFile
	case fs.ModeDir:
		return corev1.HostPathDirectory
	case fs.ModeSocket:
		return corev1.HostPathSocket
	case fs.ModeDevice | fs.ModeCharDevice:
		return corev1.HostPathCharDev
	case fs.ModeDevice:
		return corev1.HostPathBlockDev
	}
	return "special file"
}

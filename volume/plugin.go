package volume

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/volume/internal/hostdir"
)

// Plugin makes one kind of volume. Calls for one volume come one after another, for different ones concurrently.
type Plugin interface {
	// Name is the plugin's name, such as kubernetes.io/csi. It is part of the path of a volume, and so never changes.
	Name() string
	// Handles reports whether a volume is of this kind.
	Handles(v *corev1.Volume) bool
	// SetUp makes a volume ready, or brings it up to date. It is idempotent, also after it was interrupted, and leaves what has not changed
	// alone. It is called again after an error, unless that is [errors.ErrUnsupported]: then the pod can never run here. A [LaterError] says when.
	SetUp(ctx context.Context, m Mount) (podmill.Volume, error)
	// TearDown takes a volume away, with its directory. It is idempotent, and knows of the volume what is on disk: it may have been made by an
	// earlier process, and be half-made or half gone.
	TearDown(ctx context.Context, p Place) error
}

// PersistentPlugin is an optional interface of a [Plugin] that makes PersistentVolumes, to which claims are bound.
type PersistentPlugin interface {
	Plugin
	// HandlesPersistent reports whether a PersistentVolume is of this kind. SetUp gets it as [Mount.PV].
	HandlesPersistent(pv *corev1.PersistentVolume) bool
}

// Mount is a volume to be made ready.
type Mount struct {
	Place
	Pod    *corev1.Pod
	Volume *corev1.Volume
	// PV is what the volume's claim is bound to, and Claim is that; nil where it is not a claim.
	PV    *corev1.PersistentVolume
	Claim *corev1.PersistentVolumeClaim
	// ReadOnly says that no container of the pod may write to it.
	ReadOnly bool
}

// Place is where a volume is on disk. The layout is the kubelet's: pods/<uid>/volumes/<plugin>/<volume>, with ~ for the / in a plugin's name.
type Place struct {
	UID    types.UID // of the pod
	Plugin string    // the plugin's name
	Name   string    // of the volume; of the PersistentVolume, where a claim is bound to one
	pods   string    // the directory of all pods
}

// Path returns the absolute path of the volume's directory, which need not exist.
func (p Place) Path() string {
	return filepath.Join(p.pods, string(p.UID), volumesDir, escape(p.Plugin), p.Name)
}

// Open opens the volume's directory, and makes it and those that lead there where create asks for it. No link on the way is followed, and nothing is entered that is mounted
// there.
func (p Place) Open(create bool) (*os.Root, error) {
	return enter(p.pods, create, string(p.UID), volumesDir, escape(p.Plugin), p.Name)
}

const (
	podsDir    = "pods"
	volumesDir = "volumes"
	// subPathsDir has what is mounted for the subPaths of containers: <volume>/<container>/<index of the mount>.
	subPathsDir = "volume-subpaths"
	// dirMode keeps everybody but root from what is in volumes, whatever the modes inside.
	dirMode = 0o750
)

func escape(plugin string) string   { return strings.ReplaceAll(plugin, "/", "~") }
func unescape(plugin string) string { return strings.ReplaceAll(plugin, "~", "/") }

// parent opens the directory that the volume's own is in. No link on the way is followed.
func (p Place) parent(create bool) (*os.Root, error) {
	return enter(p.pods, create, string(p.UID), volumesDir, escape(p.Plugin))
}

// enter opens a directory below that of all pods, by the names of those that lead to it. No link on the way is followed, and nothing is entered that somebody has mounted
// there.
func enter(pods string, create bool, names ...string) (*os.Root, error) {
	if create {
		if err := os.MkdirAll(pods, dirMode); err != nil {
			return nil, err
		}
	}
	dir, err := os.OpenRoot(pods)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if create {
			err = dir.Mkdir(name, dirMode)
		}
		var next *os.Root
		if err == nil || errors.Is(err, fs.ErrExist) {
			if next, err = hostdir.Enter(dir, name); err == nil {
				err = notMounted(dir, next, name)
			}
		}
		_ = dir.Close() // nothing was written through it
		if err != nil {
			return nil, err
		}
		dir = next
	}
	return dir, nil
}

// notMounted closes what was entered, and returns an error, if it is mounted.
func notMounted(dir, entered *os.Root, name string) error {
	mounted, err := hostdir.IsMount(dir, name)
	if err == nil && mounted {
		err = &fs.PathError{Op: "open", Path: hostdir.Path(dir, name), Err: errStrangeMount}
	}
	if err != nil {
		_ = entered.Close() // nothing was written through it
	}
	return err
}

// remove unmounts the memory that is mounted on the volume's directory, if any, and removes the directory.
func (p Place) remove() error {
	parent, err := p.parent(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer parent.Close()
	for {
		mounted, err := hostdir.IsMount(parent, p.Name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case !mounted:
			return hostdir.RemoveTree(parent, p.Name)
		}
		if err := hostdir.UnmountTmpfs(parent, p.Name); err != nil {
			return err
		}
	}
}

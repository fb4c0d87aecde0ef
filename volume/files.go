package volume

import (
	"context"
	"io/fs"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/volume/internal/atomicdir"
	"github.com/podmill/podmill/volume/internal/hostdir"
)

// files makes volumes that hold files which the agent writes: configMap, secret, downwardAPI and projected.
type files struct {
	name     string
	inMemory bool
	handles  func(v *corev1.Volume) bool
	collect  func(ctx context.Context, m Mount) (collected, error)
	warn     func(pod *corev1.Pod, message string)
}

// collected is what a volume should hold.
type collected struct {
	content  payload
	warnings []string  // what people should know about it
	renew    time.Time // when it should be collected anew because something of it ends; zero if nothing does
}

func (f *files) Name() string                  { return f.name }
func (f *files) Handles(v *corev1.Volume) bool { return f.handles(v) }

// SetUp collects first, so that nothing is left half-made when that fails.
func (f *files) SetUp(ctx context.Context, m Mount) (podmill.Volume, error) {
	all, err := f.collect(ctx, m)
	if err != nil {
		return podmill.Volume{}, err
	}
	var memory *hostdir.Tmpfs
	if f.inMemory {
		memory = &hostdir.Tmpfs{}
	}
	dir, err := makeDir(m, filesDirMode, memory)
	if err != nil {
		return podmill.Volume{}, err
	}
	defer dir.Close()
	mode, _ := owned(m.Pod, filesDirMode)
	changed, err := atomicdir.Write(atomicdir.In(dir), all.content, mode)
	if err != nil {
		return podmill.Volume{}, err
	}
	if changed {
		for _, warning := range all.warnings {
			f.warn(m.Pod, warning)
		}
	}
	return podmill.Volume{HostPath: m.Path(), ReadOnly: true, SELinuxRelabel: true, Renew: all.renew}, nil
}

func (*files) TearDown(_ context.Context, p Place) error { return p.remove() }

// filesDirMode lets everybody read and only the agent write.
const filesDirMode = 0o755

// groupReads is what a pod's fsGroup may do with files that it owns, whatever their mode: the kubelet's rule.
const groupReads = 0o440

// file returns a file of a pod's volume. Its group is that of its directory.
func file(pod *corev1.Pod, data []byte, mode int32) atomicdir.File {
	perm := fs.FileMode(mode).Perm()
	if fsGroup(pod) != nil {
		perm |= groupReads
	}
	return atomicdir.File{Data: data, Mode: perm, UID: -1}
}

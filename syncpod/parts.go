package syncpod

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/syncpod/env"
)

// part is what a mount with a subPath has of its volume.
type part struct {
	path     string // in the volume
	hostPath string // where the runtime finds it; empty where the volume is an image, of which the runtime itself takes the part
}

// mountParts has the parts mounted that a container has of its volumes.
func (u *bringingUp) mountParts(
	ctx context.Context, c *corev1.Container, volumes map[string]podmill.Volume, vars []podmill.EnvVar,
) (map[int]part, error) {
	parts := map[int]part{}
	for i := range c.VolumeMounts {
		m := &c.VolumeMounts[i]
		subPath, err := subPathOf(m, vars)
		if err != nil {
			return nil, err
		}
		if subPath == "" {
			continue
		}
		p := part{path: subPath}
		if volume, ok := volumes[m.Name]; ok && volume.HostPath != "" {
			if p.hostPath, err = u.mountPart(ctx, podmill.SubPath{Container: c.Name, Index: i, Volume: m.Name, Path: subPath}); err != nil {
				return nil, &podmill.ReasonError{Reason: reasonConfigError, Err: err, Message: fmt.Sprintf(
					"volumeMounts of volume %q: failed to prepare subPath for volumeMount %q of container %q: %v", m.Name, m.Name, c.Name, err)}
			}
		}
		parts[i] = p
	}
	return parts, nil
}

func (u *bringingUp) mountPart(ctx context.Context, s podmill.SubPath) (hostPath string, err error) {
	mounter, ok := u.Syncer.volumes.(podmill.SubPathMounter)
	if !ok {
		return "", errors.New("nothing mounts parts of volumes here")
	}
	err = u.step(u.pod, "subPath", s.Container, func() (err error) {
		hostPath, err = mounter.MountSubPath(ctx, u.pod, s)
		return err
	})
	return hostPath, err
}

// subPathOf returns the path in its volume that a mount is of, empty for the volume as a whole. An expression whose variables are not all known, and not empty, is an
// error: the container would share a directory that it should have for itself.
func subPathOf(m *corev1.VolumeMount, vars []podmill.EnvVar) (string, error) {
	subPath, field := m.SubPath, "subPath"
	if m.SubPathExpr != "" {
		var missing []string
		field = "subPathExpr"
		if subPath, missing = env.SubPath(m.SubPathExpr, vars); len(missing) > 0 {
			return "", configError("volumeMounts of volume %q: subPathExpr %q: missing value for %s", m.Name, m.SubPathExpr, strings.Join(missing, ", "))
		}
	}
	switch {
	case path.IsAbs(subPath):
		return "", configError("volumeMounts of volume %q: %s %q must not be an absolute path", m.Name, field, subPath)
	case slices.Contains(strings.Split(subPath, "/"), ".."):
		return "", configError("volumeMounts of volume %q: %s %q must not contain '..'", m.Name, field, subPath)
	}
	return subPath, nil
}

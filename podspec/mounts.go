package podspec

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// mounts checks where a container has volumes. No two things may be in one place, and no volume in two ways.
func (c *checker) mounts(p path, container *corev1.Container) {
	paths, devices := map[string]bool{}, map[string]string{}
	for _, d := range container.VolumeDevices {
		devices[d.Name] = d.DevicePath
	}
	for i := range container.VolumeMounts {
		m := &container.VolumeMounts[i]
		at := p.Index(i)
		if c.given(at.Child("name"), m.Name, "say which volume") {
			c.volumeExists(at.Child("name"), m.Name)
		}
		c.given(at.Child("mountPath"), m.MountPath, "give the path in the container")
		if paths[m.MountPath] {
			c.invalid(at.Child("mountPath"), m.MountPath, "must be the path of one mount only")
		}
		paths[m.MountPath] = true
		if _, ok := devices[m.Name]; ok {
			c.invalid(at.Child("name"), m.Name, "is among volumeDevices already: only one can be")
		}
		if slices.Contains(slices.Collect(maps.Values(devices)), m.MountPath) {
			c.invalid(at.Child("mountPath"), m.MountPath, "is the path of a device")
		}
		c.below(at.Child("subPath"), m.SubPath)
		c.below(at.Child("subPathExpr"), m.SubPathExpr)
		if m.SubPath != "" && m.SubPathExpr != "" {
			c.invalid(at.Child("subPathExpr"), m.SubPathExpr, "there is a subPath already: only one can be set")
		}
		c.mountOptions(at, m, container)
	}
}

func (c *checker) volumeExists(p path, name string) {
	if c.volumes[name] == nil {
		c.notFound(p, name, "must be one of spec.volumes")
	}
}

func (c *checker) mountOptions(p path, m *corev1.VolumeMount, container *corev1.Container) {
	e := &c.problems
	propagation := corev1.MountPropagationNone
	if m.MountPropagation != nil {
		propagation = *m.MountPropagation
		at := p.Child("mountPropagation")
		oneOf(e, at, propagation, corev1.MountPropagationNone, corev1.MountPropagationHostToContainer, corev1.MountPropagationBidirectional)
		if propagation == corev1.MountPropagationBidirectional && !isPrivileged(container) {
			e.forbidden(at, "Bidirectional needs a privileged container")
		}
	}
	if m.RecursiveReadOnly != nil {
		at := p.Child("recursiveReadOnly")
		oneOf(e, at, *m.RecursiveReadOnly, corev1.RecursiveReadOnlyDisabled, corev1.RecursiveReadOnlyIfPossible, corev1.RecursiveReadOnlyEnabled)
		if wanted := *m.RecursiveReadOnly; wanted == corev1.RecursiveReadOnlyEnabled || wanted == corev1.RecursiveReadOnlyIfPossible {
			if !m.ReadOnly {
				e.forbidden(at, "needs a readOnly that is true")
			}
			if propagation != corev1.MountPropagationNone {
				e.forbidden(at, "needs a mountPropagation of None")
			}
		}
	}
	at := p.Child("bindMountOptions")
	for i, option := range m.BindMountOptions {
		oneOf(e, at.Index(i), option, string(corev1.BindMountOptionNoExec), string(corev1.BindMountOptionNoDev), string(corev1.BindMountOptionNoSUID))
		if slices.Contains(m.BindMountOptions[:i], option) {
			e.duplicate(at.Index(i), option)
		}
	}
	if v := c.volumes[m.Name]; v != nil && v.Image != nil && len(m.BindMountOptions) > 0 {
		e.invalid(at, m.BindMountOptions, "cannot be set for the volume of an image")
	}
}

// devices checks where a container has block devices.
func (c *checker) devices(p path, container *corev1.Container) {
	names, paths, mounts := map[string]bool{}, map[string]bool{}, map[string]string{}
	for _, m := range container.VolumeMounts {
		mounts[m.Name] = m.MountPath
	}
	for i, d := range container.VolumeDevices {
		at := p.Index(i)
		if c.given(at.Child("name"), d.Name, "say which volume") {
			c.volumeExists(at.Child("name"), d.Name)
		}
		if v := c.volumes[d.Name]; v != nil && v.PersistentVolumeClaim == nil && v.Ephemeral == nil {
			c.invalid(at.Child("name"), d.Name, "must be a persistentVolumeClaim or an ephemeral volume")
		}
		if names[d.Name] {
			c.invalid(at.Child("name"), d.Name, "must be the volume of one device only")
		}
		c.given(at.Child("devicePath"), d.DevicePath, "give the path in the container")
		if paths[d.DevicePath] {
			c.invalid(at.Child("devicePath"), d.DevicePath, "must be the path of one device only")
		}
		c.noBacksteps(at.Child("devicePath"), d.DevicePath)
		if _, ok := mounts[d.Name]; ok {
			c.invalid(at.Child("name"), d.Name, "is among volumeMounts already: only one can be")
		}
		if slices.Contains(slices.Collect(maps.Values(mounts)), d.DevicePath) {
			c.invalid(at.Child("devicePath"), d.DevicePath, "is the path of a mount")
		}
		names[d.Name], paths[d.DevicePath] = true, true
	}
}

// below checks a path that must stay below where it starts.
func (e *problems) below(p path, name string) {
	if strings.HasPrefix(name, "/") {
		e.invalid(p, name, "must be a relative path")
	}
	e.noBacksteps(p, name)
}

func (e *problems) noBacksteps(p path, name string) {
	if slices.Contains(strings.Split(name, "/"), "..") {
		e.invalid(p, name, "must not contain \"..\"")
	}
}

// fileName checks the path of a file in a volume that is updated atomically, whose own files begin with two dots.
func (e *problems) fileName(p path, name string) {
	e.below(p, name)
	if strings.HasPrefix(name, "..") && !strings.HasPrefix(name, "../") {
		e.invalid(p, name, "must not begin with \"..\"")
	}
}

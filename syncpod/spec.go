package syncpod

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// resolved is what a container's spec is made of beside the container itself.
type resolved struct {
	sandbox     *podmill.SandboxSpec
	targetID    string
	sandboxID   string
	attempt     uint32
	image       *podmill.Image
	devices     podmill.DeviceAllotment
	env         []podmill.EnvVar
	command     []string
	args        []string
	volumes     map[string]podmill.Volume
	parts       map[int]part // by the index of their mounts
	message     string       // the file for its termination message, empty if it has none
	hosts       string       // the file that is the container's /etc/hosts, empty if it has none of its own
	oomScoreAdj int64
}

// containerSpec returns what to create of a container. It is pure; the error is a *podmill.ReasonError.
func containerSpec(pod *corev1.Pod, c *corev1.Container, r *resolved) (*podmill.ContainerSpec, error) {
	user, err := userOf(pod, c, r.image)
	if err != nil {
		return nil, err
	}
	mounts, err := mountsOf(c, r)
	if err != nil {
		return nil, err
	}
	devices, err := devicesOf(c, r)
	if err != nil {
		return nil, err
	}
	return &podmill.ContainerSpec{
		Sandbox:      r.sandbox,
		SandboxID:    r.sandboxID,
		TargetID:     r.targetID,
		Container:    c,
		Attempt:      r.attempt,
		Image:        r.image.ID,
		Command:      r.command,
		Args:         r.args,
		WorkingDir:   c.WorkingDir,
		Env:          r.env,
		Mounts:       mounts,
		Devices:      devices,
		CDIDevices:   r.devices.CDIDevices,
		User:         user,
		OOMScoreAdj:  r.oomScoreAdj,
		LogPath:      logPath(c.Name, r.attempt),
		CgroupParent: r.sandbox.CgroupParent,
		Labels:       containerLabels(pod, c),
		Annotations:  containerAnnotations(pod, c, r),
	}, nil
}

// logPath is where a container logs, relative to the pod's log directory.
func logPath(container string, attempt uint32) string {
	return path.Join(container, strconv.FormatUint(uint64(attempt), 10)+".log")
}

func containerLabels(pod *corev1.Pod, c *corev1.Container) map[string]string {
	return map[string]string{
		podmill.LabelPodName:       pod.Name,
		podmill.LabelPodNamespace:  pod.Namespace,
		podmill.LabelPodUID:        string(pod.UID),
		podmill.LabelContainerName: c.Name,
	}
}

// containerAnnotations are what an agent that knows nothing else has to know of a container: after a restart, or when its pod is wanted
// no more.
func containerAnnotations(pod *corev1.Pod, c *corev1.Container, r *resolved) map[string]string {
	a := maps.Clone(r.devices.Annotations)
	if a == nil {
		a = map[string]string{}
	}
	a[podmill.AnnotationContainerHash] = hashOf(c)
	a[podmill.AnnotationRestartCount] = strconv.FormatUint(uint64(r.attempt), 10)
	a[podmill.AnnotationTerminationMessagePath] = c.TerminationMessagePath
	a[podmill.AnnotationTerminationMessagePolicy] = string(c.TerminationMessagePolicy)
	a[podmill.AnnotationContainerResources] = marshal(c.Resources)
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		a[podmill.AnnotationPodTerminationGracePeriod] = strconv.FormatInt(*s, 10)
	}
	if s := pod.DeletionGracePeriodSeconds; s != nil {
		a[podmill.AnnotationPodDeletionGracePeriod] = strconv.FormatInt(*s, 10)
	}
	if c.Lifecycle != nil && c.Lifecycle.PreStop != nil {
		a[podmill.AnnotationPreStopHandler] = marshal(c.Lifecycle.PreStop)
	}
	if len(c.Ports) > 0 {
		a[podmill.AnnotationContainerPorts] = marshal(c.Ports)
	}
	return a
}

// annotatedSpec returns what a container's annotations tell of its spec: as much as its preStop hook needs. What nobody can read is no hook.
func annotatedSpec(c *podmill.Container) *corev1.Container {
	spec := &corev1.Container{Name: c.Name}
	var hook corev1.LifecycleHandler
	if json.Unmarshal([]byte(c.Annotations[podmill.AnnotationPreStopHandler]), &hook) == nil {
		spec.Lifecycle = &corev1.Lifecycle{PreStop: &hook}
	}
	_ = json.Unmarshal([]byte(c.Annotations[podmill.AnnotationContainerPorts]), &spec.Ports)
	return spec
}

// marshal returns JSON of an API type, none of which fails.
func marshal(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// devicesOf returns a container's devices: those that it was allotted, and the volumes that it has as what they are.
func devicesOf(c *corev1.Container, r *resolved) ([]podmill.Device, error) {
	devices := slices.Clone(r.devices.Devices)
	for _, d := range c.VolumeDevices {
		volume, ok := r.volumes[d.Name]
		switch {
		case !ok:
			return nil, configError("volumeDevices: there is no volume %q", d.Name)
		case !volume.Block:
			return nil, configError("volumeDevices: volume %q is no block device", d.Name)
		}
		device := podmill.Device{ContainerPath: d.DevicePath, HostPath: volume.HostPath, Permissions: "mrw"}
		if volume.ReadOnly {
			device.Permissions = "r"
		}
		devices = append(devices, device)
	}
	return devices, nil
}

// mountsOf returns a container's mounts: its volumes, and /etc/hosts and the file for its termination message, unless the container mounts something
// there itself.
func mountsOf(c *corev1.Container, r *resolved) ([]podmill.Mount, error) {
	mounts := slices.Clone(r.devices.Mounts)
	hosts, message := r.hosts, r.message
	for i := range c.VolumeMounts {
		m, err := mountOf(&c.VolumeMounts[i], r.volumes, r.parts[i])
		if err != nil {
			return nil, err
		}
		switch m.ContainerPath {
		case hostsPath:
			hosts = ""
		case path.Clean("/" + c.TerminationMessagePath):
			message = ""
		}
		mounts = append(mounts, m)
	}
	if hosts != "" {
		// Read-only: what a container writes there would fill the node's disk and count for nobody (CVE-2020-8557).
		mounts = append(mounts, podmill.Mount{ContainerPath: hostsPath, HostPath: hosts, ReadOnly: true, SELinuxRelabel: true})
	}
	if message != "" {
		mounts = append(mounts, podmill.Mount{ContainerPath: c.TerminationMessagePath, HostPath: message, SELinuxRelabel: true})
	}
	for i := range mounts { // a pod with users of its own is root there all the same
		mounts[i].IDMappings = r.sandbox.IDMappings
	}
	return mounts, nil
}

func mountOf(m *corev1.VolumeMount, volumes map[string]podmill.Volume, part part) (podmill.Mount, error) {
	volume, ok := volumes[m.Name]
	switch {
	case !ok:
		return podmill.Mount{}, configError("volumeMounts: there is no volume %q", m.Name)
	case volume.Block:
		return podmill.Mount{}, configError("volumeMounts: volume %q is a block device", m.Name)
	}
	mount := podmill.Mount{
		ContainerPath:  path.Clean("/" + m.MountPath),
		HostPath:       volume.HostPath,
		Image:          volume.Image,
		ReadOnly:       m.ReadOnly || volume.ReadOnly,
		SELinuxRelabel: volume.SELinuxRelabel,
		Options:        m.BindMountOptions,
	}
	if m.ReadOnly && m.RecursiveReadOnly != nil && *m.RecursiveReadOnly != corev1.RecursiveReadOnlyDisabled {
		mount.RecursiveReadOnly = *m.RecursiveReadOnly
	}
	switch {
	case part.path != "" && mount.HostPath != "":
		mount.HostPath = part.hostPath
	case part.path != "":
		mount.ImageSubPath = part.path
	}
	if m.MountPropagation != nil && *m.MountPropagation != corev1.MountPropagationNone {
		mount.Propagation = *m.MountPropagation
	}
	return mount, nil
}

func configError(format string, args ...any) error {
	return &podmill.ReasonError{Reason: reasonConfigError, Message: fmt.Sprintf(format, args...)}
}

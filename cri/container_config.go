package cri

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill"
)

// container returns what CRI is told of a container. What is resolved in the spec is told, never the container's own.
func (t *translation) container(spec *podmill.ContainerSpec) (*runtimeapi.ContainerConfig, error) {
	if err := unspeakable(spec); err != nil {
		return nil, err
	}
	c := spec.Container
	security, err := t.security(spec)
	if err != nil {
		return nil, err
	}
	config := &runtimeapi.ContainerConfig{
		Metadata:    &runtimeapi.ContainerMetadata{Name: c.Name, Attempt: spec.Attempt},
		Image:       &runtimeapi.ImageSpec{Image: spec.Image, UserSpecifiedImage: c.Image},
		Command:     spec.Command,
		Args:        spec.Args,
		WorkingDir:  spec.WorkingDir,
		Labels:      spec.Labels,
		Annotations: spec.Annotations,
		LogPath:     spec.LogPath,
		Stdin:       c.Stdin,
		StdinOnce:   c.StdinOnce,
		Tty:         c.TTY,
		Linux:       &runtimeapi.LinuxContainerConfig{Resources: t.containerResources(spec.Sandbox.Pod, c), SecurityContext: security},
	}
	config.Linux.Resources.OomScoreAdj = spec.OOMScoreAdj // how soon it goes when memory is short
	for _, v := range spec.Env {
		config.Envs = append(config.Envs, &runtimeapi.KeyValue{Key: v.Name, Value: []byte(v.Value)})
	}
	if config.Mounts, err = mounts(spec); err != nil {
		return nil, err
	}
	for _, d := range spec.Devices {
		config.Devices = append(config.Devices, &runtimeapi.Device{ContainerPath: d.ContainerPath, HostPath: d.HostPath, Permissions: d.Permissions})
	}
	for _, name := range spec.CDIDevices {
		config.CDIDevices = append(config.CDIDevices, &runtimeapi.CDIDevice{Name: name})
	}
	config.StopSignal, err = stopSignal(spec)
	return config, err
}

// unspeakable refuses what there is no word for in CRI.
func unspeakable(spec *podmill.ContainerSpec) error {
	switch c, pod := spec.Container, spec.Sandbox.Pod; {
	case spec.Labels[podmill.LabelPodUID] != string(pod.UID):
		return refuse(spec, "labels", "without "+podmill.LabelPodUID+" the container would not be found again")
	case spec.CgroupParent != "" && spec.CgroupParent != spec.Sandbox.CgroupParent:
		return refuse(spec, "cgroup parent "+spec.CgroupParent, "a container is below its sandbox's, "+spec.Sandbox.CgroupParent)
	case len(c.VolumeDevices) > len(spec.Devices):
		return refuse(spec, "volumeDevices", "nobody says which devices they are")
	case len(c.Resources.Claims) > 0:
		return refuse(spec, "resources.claims", "devices cannot be handed over yet")
	}
	return nil
}

// stopSignal returns the container's own signal. Kubernetes' SIGRTMIN+1 is CRI's SIGNAL_SIGRTMINPLUS1.
func stopSignal(spec *podmill.ContainerSpec) (runtimeapi.Signal, error) {
	l := spec.Container.Lifecycle
	if l == nil || l.StopSignal == nil {
		return runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT, nil
	}
	name := strings.NewReplacer("+", "PLUS", "-", "MINUS").Replace(string(*l.StopSignal))
	signal, ok := runtimeapi.Signal_value["SIGNAL_"+name]
	if !ok || signal == int32(runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT) {
		return 0, refuse(spec, "lifecycle.stopSignal", string(*l.StopSignal)+" is not a signal")
	}
	return runtimeapi.Signal(signal), nil
}

func mounts(spec *podmill.ContainerSpec) ([]*runtimeapi.Mount, error) {
	var out []*runtimeapi.Mount
	for _, m := range spec.Mounts {
		mount := &runtimeapi.Mount{
			ContainerPath:     m.ContainerPath,
			HostPath:          m.HostPath,
			Readonly:          m.ReadOnly,
			RecursiveReadOnly: m.RecursiveReadOnly == corev1.RecursiveReadOnlyEnabled,
			SelinuxRelabel:    m.SELinuxRelabel,
			MountOptions:      m.Options,
		}
		if m.HostPath == "" {
			if m.Image == "" {
				return nil, refuse(spec, "mount at "+m.ContainerPath, "there is nothing to mount")
			}
			mount.Image, mount.ImageSubPath = &runtimeapi.ImageSpec{Image: m.Image}, m.ImageSubPath
		}
		switch m.Propagation {
		case corev1.MountPropagationNone, "":
			mount.Propagation = runtimeapi.MountPropagation_PROPAGATION_PRIVATE
		case corev1.MountPropagationHostToContainer:
			mount.Propagation = runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER
		case corev1.MountPropagationBidirectional:
			mount.Propagation = runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL
		default:
			return nil, refuse(spec, "mount at "+m.ContainerPath, "propagation "+string(m.Propagation)+" is not known")
		}
		if ids := m.IDMappings; ids != nil {
			mount.UidMappings, mount.GidMappings = mappings(ids.UIDs), mappings(ids.GIDs)
		}
		out = append(out, mount)
	}
	return out, nil
}

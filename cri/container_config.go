package cri

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill"
)

// container returns what CRI is told of a container. What is resolved in the spec is told, never the container's own.
func (t *translation) container(spec *podmill.ContainerSpec) (*runtimeapi.ContainerConfig, error) {
	c := spec.Container
	if len(c.VolumeDevices) > 0 {
		return nil, refuse(spec.Sandbox.Pod, "volumeDevices of container "+c.Name, "raw block volumes cannot be handed over yet")
	}
	security, err := t.security(spec)
	if err != nil {
		return nil, err
	}
	mounts, err := mounts(spec)
	if err != nil {
		return nil, err
	}
	config := &runtimeapi.ContainerConfig{
		Metadata:    &runtimeapi.ContainerMetadata{Name: c.Name, Attempt: spec.Attempt},
		Image:       &runtimeapi.ImageSpec{Image: spec.Image, UserSpecifiedImage: c.Image, RuntimeHandler: spec.Sandbox.RuntimeHandler},
		Command:     spec.Command,
		Args:        spec.Args,
		WorkingDir:  spec.WorkingDir,
		Mounts:      mounts,
		Labels:      spec.Labels,
		Annotations: spec.Annotations,
		LogPath:     spec.LogPath,
		Stdin:       c.Stdin,
		StdinOnce:   c.StdinOnce,
		Tty:         c.TTY,
		Linux:       &runtimeapi.LinuxContainerConfig{Resources: t.containerResources(spec), SecurityContext: security},
	}
	for _, v := range spec.Env {
		config.Envs = append(config.Envs, &runtimeapi.KeyValue{Key: v.Name, Value: []byte(v.Value)})
	}
	if c.Lifecycle != nil && c.Lifecycle.StopSignal != nil {
		signal, ok := runtimeapi.Signal_value[string(*c.Lifecycle.StopSignal)]
		if !ok {
			return nil, refuse(spec.Sandbox.Pod, "lifecycle.stopSignal of container "+c.Name, fmt.Sprintf("%s is not a signal", *c.Lifecycle.StopSignal))
		}
		config.StopSignal = runtimeapi.Signal(signal)
	}
	return config, nil
}

func mounts(spec *podmill.ContainerSpec) ([]*runtimeapi.Mount, error) {
	var out []*runtimeapi.Mount
	for _, m := range spec.Mounts {
		mount := &runtimeapi.Mount{
			ContainerPath:     m.ContainerPath,
			HostPath:          m.HostPath,
			Readonly:          m.ReadOnly,
			RecursiveReadOnly: m.RecursiveReadOnly,
			SelinuxRelabel:    m.SELinuxRelabel,
			Propagation:       propagation(m.Propagation),
			ImageSubPath:      m.ImageSubPath,
		}
		switch {
		case m.HostPath == "" && m.Image == "":
			return nil, refuse(spec.Sandbox.Pod, "volumeMounts of container "+spec.Container.Name, "nothing is to be mounted at "+m.ContainerPath)
		case m.Image != "":
			mount.Image = &runtimeapi.ImageSpec{Image: m.Image}
		}
		if ids := m.IDMappings; ids != nil {
			mount.UidMappings, mount.GidMappings = mappings(ids.UIDs), mappings(ids.GIDs)
		}
		out = append(out, mount)
	}
	return out, nil
}

func propagation(mode corev1.MountPropagationMode) runtimeapi.MountPropagation {
	switch mode {
	case corev1.MountPropagationHostToContainer:
		return runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER
	case corev1.MountPropagationBidirectional:
		return runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL
	default:
		return runtimeapi.MountPropagation_PROPAGATION_PRIVATE
	}
}

// refuse is the error for what a pod asks and a runtime cannot be told.
func refuse(pod *corev1.Pod, field, why string) error {
	return &podmill.ReasonError{
		Reason:  "CreateContainerConfigError",
		Message: fmt.Sprintf("pod %s: %s: %s", podmill.RefOf(pod), field, why),
	}
}

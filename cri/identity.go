package cri

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill"
)

// identity is who a runtime is and what it can do. It holds for one connection: behind the next one there may be another version.
type identity struct {
	connection   uint64
	name         string
	version      string
	cgroupDriver string
	features     *runtimeapi.RuntimeFeatures
	handlers     []*runtimeapi.RuntimeHandler
}

// introduce asks the runtime who it is.
func (c *Client) introduce(ctx context.Context) error {
	_, err := c.identity(ctx)
	return err
}

// identity returns who the runtime is, and asks once for each connection.
func (c *Client) identity(ctx context.Context) (*identity, error) {
	connection := c.connections.Load()
	if known := c.known.Load(); known != nil && known.connection == connection {
		return known, nil
	}
	version, err := call(ctx, c, op{method: "Version", timeout: c.opts.timeout}, c.runtime.Version, &runtimeapi.VersionRequest{})
	if err != nil {
		return nil, err
	}
	it := &identity{connection: c.connections.Load(), name: version.GetRuntimeName(), version: version.GetRuntimeVersion()}
	if it.cgroupDriver, err = c.cgroupDriver(ctx); err != nil {
		return nil, err
	}
	status, err := c.status(ctx)
	if err != nil {
		return nil, err
	}
	it.features, it.handlers = status.GetFeatures(), status.GetRuntimeHandlers()
	c.known.Store(it)
	return it, nil
}

// cgroupDriver returns the runtime's cgroup driver, empty if it does not tell, as containerd before 2.0.
func (c *Client) cgroupDriver(ctx context.Context) (string, error) {
	config, err := call(ctx, c, op{method: "RuntimeConfig", timeout: c.opts.timeout}, c.runtime.RuntimeConfig, &runtimeapi.RuntimeConfigRequest{})
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return "", nil
	case err != nil:
		return "", err
	case config.GetLinux() == nil:
		return "", nil
	case config.GetLinux().GetCgroupDriver() == runtimeapi.CgroupDriver_CGROUPFS:
		return "cgroupfs", nil
	default:
		return "systemd", nil
	}
}

// handler returns what a runtime handler can do; nil can nothing.
func (i *identity) handler(name string) *runtimeapi.RuntimeHandlerFeatures {
	for _, h := range i.handlers {
		if h.GetName() == name {
			return h.GetFeatures()
		}
	}
	return nil
}

// knowsCDI reports that the runtime does not pass over devices by name. No runtime says so of itself; containerd has known them since 1.7.
func (i *identity) knowsCDI() bool { return i.name != "containerd" || atLeast(i.version, 1, 7) }

// demand is something that a runtime must know of to do it. One that does not know leaves it out without a word, so that it is asked first.
type demand struct {
	field string
	met   func(*identity) bool
}

// demands are what a sandbox and a container in it, which may be nil, ask for that not every runtime can.
func demands(spec *podmill.SandboxSpec, container *podmill.ContainerSpec) []demand {
	var out []demand
	handler := spec.RuntimeHandler
	if sc := spec.Pod.Spec.SecurityContext; sc != nil && sc.SupplementalGroupsPolicy != nil && *sc.SupplementalGroupsPolicy == corev1.SupplementalGroupsPolicyStrict {
		out = append(out, demand{"securityContext.supplementalGroupsPolicy Strict", func(i *identity) bool { return i.features.GetSupplementalGroupsPolicy() }})
	}
	if spec.IDMappings != nil {
		out = append(out, demand{"hostUsers: false", func(i *identity) bool { return i.handler(handler).GetUserNamespaces() }})
		if spec.Pod.Spec.HostNetwork {
			out = append(out, demand{"hostUsers: false with hostNetwork", func(i *identity) bool { return i.features.GetUserNamespacesHostNetwork() }})
		}
	}
	if container == nil {
		return out
	}
	for i := range container.Mounts {
		if container.Mounts[i].HostPath == "" {
			out = append(out, demand{"mount of an image at " + container.Mounts[i].ContainerPath, (*identity).imageVolumes})
			if container.Mounts[i].ImageSubPath != "" {
				out = append(out, demand{"subPath of the mount of an image at " + container.Mounts[i].ContainerPath, (*identity).imageSubPaths})
			}
		}
		if len(container.Mounts[i].Options) > 0 {
			out = append(out, demand{"bindMountOptions of the mount at " + container.Mounts[i].ContainerPath, func(i *identity) bool { return i.features.GetMountOptions() }})
		}
		if container.Mounts[i].RecursiveReadOnly == corev1.RecursiveReadOnlyEnabled {
			out = append(out, demand{"recursiveReadOnly of the mount at " + container.Mounts[i].ContainerPath,
				func(i *identity) bool { return i.handler(handler).GetRecursiveReadOnlyMounts() }})
		}
	}
	if len(container.CDIDevices) > 0 {
		out = append(out, demand{"device " + container.CDIDevices[0], (*identity).knowsCDI})
	}
	return out
}

// ifPossible makes mounts recursively read-only that would like to be, where the runtime can. It asks the runtime only where there are any.
func (c *Client) ifPossible(ctx context.Context, spec *podmill.ContainerSpec, config *runtimeapi.ContainerConfig) error {
	for i := range spec.Mounts {
		if spec.Mounts[i].RecursiveReadOnly != corev1.RecursiveReadOnlyIfPossible {
			continue
		}
		it, err := c.identity(ctx)
		if err != nil {
			return err
		}
		config.Mounts[i].RecursiveReadOnly = it.handler(spec.Sandbox.RuntimeHandler).GetRecursiveReadOnlyMounts()
	}
	return nil
}

// unmet returns the first demand that the runtime cannot meet, and why. It asks the runtime only where there are any.
func (c *Client) unmet(ctx context.Context, all []demand) (field, why string, err error) {
	if len(all) == 0 {
		return "", "", nil
	}
	it, err := c.identity(ctx)
	if err != nil {
		return "", "", err
	}
	for _, d := range all {
		if !d.met(it) {
			return d.field, "the runtime, " + it.name + " " + it.version + ", does not support it", nil
		}
	}
	return "", "", nil
}

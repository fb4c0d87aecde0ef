package syncpod

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/syncpod/env"
)

// bringingUp is what the containers that are started together have in common.
type bringingUp struct {
	*Syncer
	*preparation
	pod   *corev1.Pod
	seen  *podmill.RuntimePod
	hooks *beside

	patient bool          // images wait for the sandbox
	housed  chan struct{} // closed when there is a sandbox, or will be none: ctx has ended then
	sandbox *podmill.Sandbox
	hosts   string
}

// start brings a container's image and, once there is a sandbox for it, creates the container and starts it. Between any two of these, the end
// of ctx is the end: a pod that was deleted while its image was pulled starts nothing any more.
func (u *bringingUp) start(ctx context.Context, start *Start) outcome {
	c := start.Container
	image, volumes, err := u.images(ctx, c)
	<-u.housed
	if err != nil {
		return u.withoutImage(ctx, c.Name, err)
	}
	if ctx.Err() != nil {
		return outcome{err: ctx.Err()}
	}
	spec, err := u.resolve(ctx, start, image, volumes)
	if err != nil {
		return u.told(c.Name, u.failed(ctx, reasonConfigError, err))
	}
	if ctx.Err() != nil {
		return outcome{err: ctx.Err()}
	}
	var id string
	err = u.step(u.pod, "create", c.Name, func() (err error) {
		id, err = u.Runtime.CreateContainer(ctx, spec)
		return err
	})
	if err != nil {
		return u.told(c.Name, u.failed(ctx, reasonCreateError, err))
	}
	u.event(u.pod, c.Name, corev1.EventTypeNormal, eventCreated, "Container created")
	if ctx.Err() != nil {
		return outcome{err: ctx.Err()}
	}
	o := u.run(ctx, c, id)
	if o.err == nil { // no earlier than the kubelet: the container does not wait for it
		logFailure(ctx, u.pod, "a container's log has no link", u.linkLog(u.pod, c.Name, id, start.Attempt))
	}
	return o
}

// images brings the images that a container needs: its own, and those that it mounts.
func (u *bringingUp) images(ctx context.Context, c *corev1.Container) (image *podmill.Image, volumes map[string]podmill.Volume, err error) {
	if u.patient {
		<-u.housed
	}
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	err = u.step(u.pod, "image", c.Name, func() (err error) {
		image, err = u.Images.EnsureImage(ctx, u.pod, c, u.spec, u.auths)
		return err
	})
	if err == nil {
		volumes, err = u.withImages(ctx, c)
	}
	return image, volumes, err
}

// run starts a created container and begins its postStart hook. That the hook begins is kept first: a container that runs, and of
// whose hook nothing is known, would count as started.
func (u *bringingUp) run(ctx context.Context, c *corev1.Container, id string) outcome {
	hooked := c.Lifecycle != nil && c.Lifecycle.PostStart != nil
	if hooked {
		if err := u.hooks.keeper.postStartBegins(c.Name, id); err != nil {
			return u.told(c.Name, u.failed(ctx, reasonRunError, err))
		}
	}
	if err := u.step(u.pod, "start", c.Name, func() error { return u.Runtime.StartContainer(ctx, id) }); err != nil {
		o := u.told(c.Name, u.failed(ctx, reasonRunError, err))
		o.tried = true
		return o
	}
	u.event(u.pod, c.Name, corev1.EventTypeNormal, eventStarted, "Container started")
	if hooked {
		u.hooks.postStart(&hook{container: c, handler: c.Lifecycle.PostStart, id: id, address: u.addressOf(u.pod.Spec.HostNetwork, u.sandbox)})
	}
	return outcome{tried: true}
}

// resolve gathers what a container's spec leaves to be found out.
func (u *bringingUp) resolve(
	ctx context.Context, start *Start, image *podmill.Image, volumes map[string]podmill.Volume,
) (*podmill.ContainerSpec, error) {
	c := start.Container
	vars, err := env.Resolve(u.environment(ctx, c))
	if err != nil {
		return nil, err
	}
	devices, err := u.allotDevices(ctx, c)
	if err != nil {
		return nil, err
	}
	targetID, ok := target(u.pod, c.Name, u.seen)
	if !ok {
		return nil, fmt.Errorf("unable to find target container of %s", c.Name)
	}
	message, err := u.makeMessageFile(u.pod, c, start.Attempt)
	if err != nil {
		return nil, fmt.Errorf("make the file for the termination message: %w", err)
	}
	parts, err := u.mountParts(ctx, c, volumes, vars)
	if err != nil {
		return nil, err
	}
	command, args := env.Command(c, vars)
	return containerSpec(u.pod, c, &resolved{
		sandbox: u.spec, sandboxID: u.sandbox.ID, targetID: targetID, attempt: start.Attempt, image: image,
		devices: devices, env: append(slices.Clip(devices.Env), vars...), command: command, args: args,
		volumes: volumes, parts: parts, hosts: u.hosts, message: message,
		oomScoreAdj: oomScoreAdj(u.pod, c, start.Kind, u.node.MemoryBytes),
	})
}

// allotDevices returns what a container is given of the devices that it asks for, which are the resources with a domain.
func (u *bringingUp) allotDevices(ctx context.Context, c *corev1.Container) (given podmill.DeviceAllotment, err error) {
	for name, n := range c.Resources.Limits {
		switch {
		case n.IsZero() || !strings.Contains(string(name), "/"):
			continue
		case u.devices == nil:
			return given, configError("resources.limits[%s]: nothing hands out devices here", name)
		}
		all, err := u.devices(ctx, u.pod, c)
		if err != nil {
			return given, fmt.Errorf("resources.limits: allot devices: %w", err)
		}
		if all != nil {
			given = *all
		}
		break // they are handed out together
	}
	return given, nil
}

func (u *bringingUp) environment(ctx context.Context, c *corev1.Container) env.Input {
	in := env.Input{Pod: u.pod, Container: c, PodIPs: u.sandbox.IPs, HostIPs: u.node.IPs, Allocatable: u.node.Allocatable}
	if u.pod.Spec.HostNetwork {
		in.PodIPs = u.node.IPs
	}
	if u.configMaps != nil {
		in.ConfigMap = func(name string) (*corev1.ConfigMap, error) {
			return u.configMaps.ConfigMap(ctx, u.pod.Namespace, name)
		}
	}
	if u.secrets != nil {
		in.Secret = func(name string) (*corev1.Secret, error) { return u.secrets.Secret(ctx, u.pod.Namespace, name) }
	}
	in.File = func(volume, path string) ([]byte, error) { return readEnvFile(u.volumes, volume, path) }
	if u.services != nil {
		in.Services = func() ([]*corev1.Service, error) { return u.services.Services(ctx, u.pod.Namespace) }
	}
	return in
}

// failed makes an error the reason for which a container waits. Where it is only that ctx has ended, there is none: the pod is ending.
func (u *bringingUp) failed(ctx context.Context, reason string, err error) outcome {
	if ctx.Err() != nil {
		return outcome{err: err}
	}
	waiting := &corev1.ContainerStateWaiting{Reason: reason, Message: err.Error()}
	var known *podmill.ReasonError
	if errors.As(err, &known) {
		waiting.Reason, waiting.Message = known.Reason, known.Message
	}
	var later interface{ RetryAt() time.Time }
	if waiting.Reason == reasonPullBackOff && u.wake != nil && errors.As(err, &later) {
		return outcome{waiting: waiting, until: later.RetryAt()} // nothing has failed but what failed before
	}
	return outcome{waiting: waiting, err: err}
}

// withoutImage is the outcome where an image is not here, the container's own or one that it mounts. Images has told why; the kubelet says the reason again, in an event
// of its own.
func (u *bringingUp) withoutImage(ctx context.Context, container string, err error) outcome {
	o := u.failed(ctx, reasonImagePull, err)
	if o.waiting != nil {
		u.event(u.pod, container, corev1.EventTypeWarning, eventFailed, "Error: "+o.waiting.Reason)
	}
	return o
}

// told tells people why a container waits.
func (u *bringingUp) told(container string, o outcome) outcome {
	if o.waiting != nil {
		u.event(u.pod, container, corev1.EventTypeWarning, eventFailed, "Error: "+o.waiting.Message)
	}
	return o
}

package cri

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill"
)

// RuntimeStatus asks the runtime how it is.
func (c *Client) RuntimeStatus(ctx context.Context) (*podmill.RuntimeStatus, error) {
	r, err := call(ctx, c, "Status", c.opts.timeout, c.runtime.Status, &runtimeapi.StatusRequest{})
	if err != nil {
		return nil, err
	}
	status := &podmill.RuntimeStatus{Name: c.name, Version: c.version}
	for _, condition := range r.GetStatus().GetConditions() {
		it := podmill.Condition{OK: condition.GetStatus(), Reason: condition.GetReason(), Message: condition.GetMessage()}
		switch condition.GetType() {
		case runtimeapi.RuntimeReady:
			status.RuntimeReady = it
		case runtimeapi.NetworkReady:
			status.NetworkReady = it
		}
	}
	for _, handler := range r.GetRuntimeHandlers() {
		status.Handlers = append(status.Handlers, handler.GetName())
	}
	config, err := call(ctx, c, "RuntimeConfig", c.opts.timeout, c.runtime.RuntimeConfig, &runtimeapi.RuntimeConfigRequest{})
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return status, nil // containerd before 2.0
	case err != nil:
		return nil, err
	}
	if linux := config.GetLinux(); linux != nil {
		status.CgroupDriver = "systemd"
		if linux.GetCgroupDriver() == runtimeapi.CgroupDriver_CGROUPFS {
			status.CgroupDriver = "cgroupfs"
		}
	}
	return status, nil
}

// ReopenLog makes the runtime open a container's log file anew.
func (c *Client) ReopenLog(ctx context.Context, containerID string) error {
	_, err := call(ctx, c, "ReopenContainerLog", c.opts.timeout, c.runtime.ReopenContainerLog, &runtimeapi.ReopenContainerLogRequest{ContainerId: containerID})
	return err
}

// StreamEvents passes on whose events the runtime tells of. A runtime that tells of none is [errors.ErrUnsupported]. The stream is read as
// fast as it comes: a reader that is slow holds up containerd itself.
func (c *Client) StreamEvents(ctx context.Context, connected func(), on func(pod types.UID)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.runtime.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	if err != nil {
		return wrap(ctx, "GetContainerEvents", err)
	}
	connected()
	for {
		event, err := stream.Recv()
		if err != nil {
			return wrap(ctx, "GetContainerEvents", err)
		}
		if uid := eventOf(event); uid != "" {
			on(uid)
		}
	}
}

// eventOf returns whose event it is, empty if it does not say.
func eventOf(event *runtimeapi.ContainerEventResponse) types.UID {
	if uid := event.GetPodSandboxStatus().GetMetadata().GetUid(); uid != "" {
		return types.UID(uid)
	}
	for _, c := range event.GetContainersStatuses() {
		if uid := podOf(c.GetLabels()).UID; uid != "" {
			return uid
		}
	}
	return ""
}

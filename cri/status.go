package cri

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill"
)

// RuntimeStatus asks the runtime how it is. A runtime that does not tell its cgroup driver leaves that empty.
func (c *Client) RuntimeStatus(ctx context.Context) (*podmill.RuntimeStatus, error) {
	it, err := c.identity(ctx)
	if err != nil {
		return nil, err
	}
	response, err := c.status(ctx)
	if err != nil {
		return nil, err
	}
	return observedStatus(it, response), nil
}

func (c *Client) status(ctx context.Context) (*runtimeapi.StatusResponse, error) {
	return call(ctx, c, op{method: "Status", timeout: c.opts.timeout}, c.runtime.Status, &runtimeapi.StatusRequest{})
}

// ReopenLog makes the runtime open a container's log file anew.
func (c *Client) ReopenLog(ctx context.Context, containerID string) error {
	_, err := call(ctx, c, op{"ReopenContainerLog", containerID, c.opts.timeout}, c.runtime.ReopenContainerLog,
		&runtimeapi.ReopenContainerLogRequest{ContainerId: containerID})
	return err
}

package cri

import (
	"context"
	"math"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill"
)

// RunSandbox creates and starts a sandbox.
func (c *Client) RunSandbox(ctx context.Context, spec *podmill.SandboxSpec) (string, error) {
	config, err := c.opts.sandbox(spec)
	if err != nil {
		return "", err
	}
	// Setting up a network may take longer than other calls.
	r, err := call(ctx, c, "RunPodSandbox", 2*c.opts.timeout, c.runtime.RunPodSandbox,
		&runtimeapi.RunPodSandboxRequest{Config: config, RuntimeHandler: spec.RuntimeHandler})
	return r.GetPodSandboxId(), err
}

// StopSandbox stops a sandbox and all that runs in it.
func (c *Client) StopSandbox(ctx context.Context, id string) error {
	_, err := call(ctx, c, "StopPodSandbox", c.opts.timeout, c.runtime.StopPodSandbox, &runtimeapi.StopPodSandboxRequest{PodSandboxId: id})
	return absent(err)
}

// RemoveSandbox removes a sandbox and its containers.
func (c *Client) RemoveSandbox(ctx context.Context, id string) error {
	_, err := call(ctx, c, "RemovePodSandbox", c.opts.timeout, c.runtime.RemovePodSandbox, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: id})
	return absent(err)
}

// CreateContainer creates a container.
func (c *Client) CreateContainer(ctx context.Context, spec *podmill.ContainerSpec) (string, error) {
	sandbox, err := c.opts.sandbox(spec.Sandbox)
	if err != nil {
		return "", err
	}
	config, err := c.opts.container(spec)
	if err != nil {
		return "", err
	}
	r, err := call(ctx, c, "CreateContainer", c.opts.timeout, c.runtime.CreateContainer,
		&runtimeapi.CreateContainerRequest{PodSandboxId: spec.SandboxID, Config: config, SandboxConfig: sandbox})
	return r.GetContainerId(), err
}

// StartContainer starts a created container.
func (c *Client) StartContainer(ctx context.Context, id string) error {
	_, err := call(ctx, c, "StartContainer", c.opts.timeout, c.runtime.StartContainer, &runtimeapi.StartContainerRequest{ContainerId: id})
	return err
}

// StopContainer stops a container. CRI counts in seconds; a part of one is given whole, so that nothing is killed early.
func (c *Client) StopContainer(ctx context.Context, id string, grace time.Duration) error {
	seconds := int64(max(0, math.Ceil(grace.Seconds())))
	_, err := call(ctx, c, "StopContainer", max(0, grace)+c.opts.timeout, c.runtime.StopContainer,
		&runtimeapi.StopContainerRequest{ContainerId: id, Timeout: seconds})
	return absent(err)
}

// RemoveContainer removes a container, running or not.
func (c *Client) RemoveContainer(ctx context.Context, id string) error {
	_, err := call(ctx, c, "RemoveContainer", c.opts.timeout, c.runtime.RemoveContainer, &runtimeapi.RemoveContainerRequest{ContainerId: id})
	return absent(err)
}

// Exec runs a command in a container. The runtime is told how long ctx lasts, so that it ends the command, too.
func (c *Client) Exec(ctx context.Context, containerID string, command []string) (*podmill.ExecResult, error) {
	request := &runtimeapi.ExecSyncRequest{ContainerId: containerID, Cmd: command}
	if deadline, ok := ctx.Deadline(); ok {
		request.Timeout = max(1, int64(math.Ceil(time.Until(deadline).Seconds())))
	}
	r, err := call(ctx, c, "ExecSync", 0, c.runtime.ExecSync, request)
	if err != nil {
		return nil, err
	}
	return &podmill.ExecResult{Stdout: r.GetStdout(), Stderr: r.GetStderr(), ExitCode: r.GetExitCode()}, nil
}

package cri

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"time"

	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill"
)

// RunSandbox creates and starts a sandbox. What a pod asks for and CRI cannot say, or the runtime cannot do, is a [podmill.ReasonError].
func (c *Client) RunSandbox(ctx context.Context, spec *podmill.SandboxSpec) (string, error) {
	config, err := c.translate.sandbox(spec)
	if err != nil {
		return "", err
	}
	if field, why, err := c.unmet(ctx, demands(spec, nil)); err != nil {
		return "", fmt.Errorf("run sandbox of pod %s: %w", podmill.RefOf(spec.Pod), err)
	} else if field != "" {
		return "", refuseSandbox(spec, field, why)
	}
	// A network may take longer than anything else.
	o := op{"RunPodSandbox", podmill.RefOf(spec.Pod).String(), 2 * c.opts.timeout}
	r, err := inTurn(ctx, c, urgencyOf(spec.Pod, newSandbox), o, c.runtime.RunPodSandbox,
		&runtimeapi.RunPodSandboxRequest{Config: config, RuntimeHandler: spec.RuntimeHandler})
	return o.id(r.GetPodSandboxId(), err)
}

// StopSandbox stops a sandbox and all that runs in it.
func (c *Client) StopSandbox(ctx context.Context, id string) error {
	_, err := call(ctx, c, op{"StopPodSandbox", id, c.opts.timeout}, c.runtime.StopPodSandbox, &runtimeapi.StopPodSandboxRequest{PodSandboxId: id})
	return absent(err)
}

// RemoveSandbox removes a sandbox and its containers.
func (c *Client) RemoveSandbox(ctx context.Context, id string) error {
	_, err := call(ctx, c, op{"RemovePodSandbox", id, c.opts.timeout}, c.runtime.RemovePodSandbox, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: id})
	return absent(err)
}

// CreateContainer creates a container. What it asks for and CRI cannot say, or the runtime cannot do, is a [podmill.ReasonError].
func (c *Client) CreateContainer(ctx context.Context, spec *podmill.ContainerSpec) (string, error) {
	sandbox, err := c.translate.sandbox(spec.Sandbox)
	if err != nil {
		return "", err
	}
	config, err := c.translate.container(spec)
	if err != nil {
		return "", err
	}
	subject := fmt.Sprintf("%s of %s", spec.Container.Name, podmill.RefOf(spec.Sandbox.Pod))
	if field, why, err := c.unmet(ctx, demands(spec.Sandbox, spec)); err != nil {
		return "", fmt.Errorf("create container %s: %w", subject, err)
	} else if field != "" {
		return "", refuse(spec, field, why)
	}
	if err := c.ifPossible(ctx, spec, config); err != nil {
		return "", fmt.Errorf("create container %s: %w", subject, err)
	}
	o := op{"CreateContainer", subject, c.opts.timeout}
	r, err := inTurn(ctx, c, urgencyOf(spec.Sandbox.Pod, newContainer), o, c.runtime.CreateContainer,
		&runtimeapi.CreateContainerRequest{PodSandboxId: spec.SandboxID, Config: config, SandboxConfig: sandbox})
	return o.id(r.GetContainerId(), err)
}

// StartContainer starts a created container.
func (c *Client) StartContainer(ctx context.Context, id string) error {
	o := op{"StartContainer", id, c.opts.timeout}
	_, err := inTurn(ctx, c, urgency{stage: madeContainer}, o, c.runtime.StartContainer, &runtimeapi.StartContainerRequest{ContainerId: id})
	return err
}

// maxGrace keeps what a runtime makes of seconds, and what is added to them here, from overflowing.
const maxGrace = 100 * 365 * 24 * time.Hour

// StopContainer stops a container. CRI counts in seconds; a part of one is given whole, so that nothing is killed early.
func (c *Client) StopContainer(ctx context.Context, id string, grace time.Duration) error {
	grace = min(max(grace, 0), maxGrace)
	_, err := call(ctx, c, op{"StopContainer", id, grace + c.opts.timeout}, c.runtime.StopContainer,
		&runtimeapi.StopContainerRequest{ContainerId: id, Timeout: int64(math.Ceil(grace.Seconds()))})
	return absent(err)
}

// RemoveContainer removes a container, running or not.
func (c *Client) RemoveContainer(ctx context.Context, id string) error {
	_, err := call(ctx, c, op{"RemoveContainer", id, c.opts.timeout}, c.runtime.RemoveContainer, &runtimeapi.RemoveContainerRequest{ContainerId: id})
	return absent(err)
}

// overdue is how long a runtime may take to end a command whose time is over.
const overdue = 10 * time.Second

// Exec runs a command in a container. The runtime is told how long ctx lasts, so that it ends the command, too; the call goes on while it does,
// ten seconds at most. Cut short in the moment when it starts a command, a runtime may leave it running for good.
func (c *Client) Exec(ctx context.Context, containerID string, command []string) (*podmill.ExecResult, error) {
	request := &runtimeapi.ExecSyncRequest{ContainerId: containerID, Cmd: command}
	deadline, ok := ctx.Deadline()
	if !ok {
		return c.execSync(ctx, request)
	}
	request.Timeout = max(1, int64(math.Ceil(time.Until(deadline).Seconds())))
	longer, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline.Add(overdue))
	type outcome struct {
		result *podmill.ExecResult
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		defer cancel()
		result, err := c.execSync(longer, request)
		done <- outcome{result, err}
	}()
	select {
	case o := <-done:
		return o.result, o.err
	case <-ctx.Done():
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			cancel()
		}
		o := op{method: "ExecSync", subject: containerID}
		return nil, o.failed(ctx, ctx, status.FromContextError(ctx.Err()).Err())
	}
}

func (c *Client) execSync(ctx context.Context, request *runtimeapi.ExecSyncRequest) (*podmill.ExecResult, error) {
	r, err := call(ctx, c, op{method: "ExecSync", subject: request.ContainerId}, c.runtime.ExecSync, request)
	if err != nil {
		return nil, err
	}
	return &podmill.ExecResult{Stdout: r.GetStdout(), Stderr: r.GetStderr(), ExitCode: r.GetExitCode()}, nil
}

// ExecURL implements [podmill.ExecStreamer].
func (c *Client) ExecURL(ctx context.Context, containerID string, exec podmill.ExecRequest) (*url.URL, error) {
	request := &runtimeapi.ExecRequest{
		ContainerId: containerID, Cmd: exec.Command, Stdin: exec.Stdin, Stdout: exec.Stdout, Stderr: exec.Stderr, Tty: exec.TTY,
	}
	o := op{method: "Exec", subject: containerID, timeout: c.opts.timeout}
	r, err := call(ctx, c, o, c.runtime.Exec, request)
	if err != nil {
		return nil, err
	}
	at, err := url.Parse(r.GetUrl())
	if err != nil || at.Host == "" {
		return nil, fmt.Errorf("%s %s: the runtime returned %q, which is no URL", o.method, o.subject, r.GetUrl())
	}
	return at, nil
}

package podmilltest

import (
	"context"
	"errors"

	"github.com/podmill/podmill"
)

// RuntimeStatus implements [podmill.StatusReporter] where the runtime below does.
func (f *FaultyRuntime) RuntimeStatus(ctx context.Context) (*podmill.RuntimeStatus, error) {
	reporter, ok := podmill.As[podmill.StatusReporter](f.Runtime)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return answer(ctx, f, target{op: OpRuntimeStatus}, func() (*podmill.RuntimeStatus, error) { return reporter.RuntimeStatus(ctx) })
}

// InspectSandbox implements [podmill.SandboxInspector] where the runtime below does.
func (f *FaultyRuntime) InspectSandbox(ctx context.Context, id string) (*podmill.Sandbox, error) {
	inspector, ok := podmill.As[podmill.SandboxInspector](f.Runtime)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return answer(ctx, f, f.about(OpInspectSandbox, id), func() (*podmill.Sandbox, error) { return inspector.InspectSandbox(ctx, id) })
}

// ReopenLog implements [podmill.LogReopener] where the runtime below does.
func (f *FaultyRuntime) ReopenLog(ctx context.Context, containerID string) error {
	reopener, ok := podmill.As[podmill.LogReopener](f.Runtime)
	if !ok {
		return errors.ErrUnsupported
	}
	return f.around(ctx, f.about(OpReopenLog, containerID), func() error { return reopener.ReopenLog(ctx, containerID) })
}

// ResizeContainer implements [podmill.Resizer] where the runtime below does.
func (f *FaultyRuntime) ResizeContainer(ctx context.Context, id string, resize *podmill.Resize) error {
	resizer, ok := podmill.As[podmill.Resizer](f.Runtime)
	if !ok {
		return errors.ErrUnsupported
	}
	return f.around(ctx, f.about(OpResizeContainer, id), func() error { return resizer.ResizeContainer(ctx, id, resize) })
}

// StreamEvents implements [podmill.EventStreamer] where the runtime below does. A fault with [Omit] is asked for every event.
func (f *FaultyRuntime) StreamEvents(ctx context.Context, connected func(), on func(podmill.RuntimeEvent)) error {
	streamer, ok := podmill.As[podmill.EventStreamer](f.Runtime)
	if !ok {
		return errors.ErrUnsupported
	}
	return f.around(ctx, target{op: OpStreamEvents}, func() error {
		return streamer.StreamEvents(ctx, connected, func(e podmill.RuntimeEvent) {
			if f.strike(target{op: OpStreamEvents, pod: e.Pod, event: true}) == nil {
				on(e)
			}
		})
	})
}

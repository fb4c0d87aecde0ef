package podmilltest

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

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

// ReopenLog implements [podmill.LogReopener] where the runtime below does.
func (f *FaultyRuntime) ReopenLog(ctx context.Context, containerID string) error {
	reopener, ok := podmill.As[podmill.LogReopener](f.Runtime)
	if !ok {
		return errors.ErrUnsupported
	}
	return f.around(ctx, f.about(OpReopenLog, containerID), func() error { return reopener.ReopenLog(ctx, containerID) })
}

// StreamEvents implements [podmill.EventStreamer] where the runtime below does. A fault with [Omit] is asked for every event.
func (f *FaultyRuntime) StreamEvents(ctx context.Context, connected func(), on func(pod types.UID)) error {
	streamer, ok := podmill.As[podmill.EventStreamer](f.Runtime)
	if !ok {
		return errors.ErrUnsupported
	}
	return f.around(ctx, target{op: OpStreamEvents}, func() error {
		return streamer.StreamEvents(ctx, connected, func(pod types.UID) {
			if f.strike(target{op: OpStreamEvents, pod: pod, event: true}) == nil {
				on(pod)
			}
		})
	})
}

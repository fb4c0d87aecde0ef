package podmilltest

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// answer makes a call that answers with a value, or what a fault makes of it.
func answer[T any](ctx context.Context, f *FaultyRuntime, t target, call func() (T, error)) (T, error) {
	var value, none T
	err := f.around(ctx, t, func() (err error) {
		value, err = call()
		return err
	})
	if err != nil {
		return none, err
	}
	return value, nil
}

// PullImage implements [podmill.ImageStore].
func (f *FaultyRuntime) PullImage(ctx context.Context, pull *podmill.ImagePull) (string, error) {
	t := target{op: OpPullImage}
	if pull.Sandbox != nil {
		t.pod = pull.Sandbox.Pod.UID
	}
	return answer(ctx, f, t, func() (string, error) { return f.Runtime.PullImage(ctx, pull) })
}

// InspectImage implements [podmill.ImageStore].
func (f *FaultyRuntime) InspectImage(ctx context.Context, image string) (*podmill.Image, error) {
	return answer(ctx, f, target{op: OpInspectImage}, func() (*podmill.Image, error) { return f.Runtime.InspectImage(ctx, image) })
}

// ListImages implements [podmill.ImageStore].
func (f *FaultyRuntime) ListImages(ctx context.Context) ([]podmill.Image, error) {
	return answer(ctx, f, target{op: OpListImages}, func() ([]podmill.Image, error) { return f.Runtime.ListImages(ctx) })
}

// RemoveImage implements [podmill.ImageStore].
func (f *FaultyRuntime) RemoveImage(ctx context.Context, image string) error {
	return f.around(ctx, target{op: OpRemoveImage}, func() error { return f.Runtime.RemoveImage(ctx, image) })
}

// Exec implements [podmill.Execer].
func (f *FaultyRuntime) Exec(ctx context.Context, containerID string, command []string) (*podmill.ExecResult, error) {
	return answer(ctx, f, f.about(OpExec, containerID), func() (*podmill.ExecResult, error) {
		return f.Runtime.Exec(ctx, containerID, command)
	})
}

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

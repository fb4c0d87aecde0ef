package podmilltest

import (
	"context"

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

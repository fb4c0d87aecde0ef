package podmilltest

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// broken is a runtime that breaks one promise.
type broken struct {
	podmill.Runtime
	create  func(*podmill.ContainerSpec)
	sandbox func(*podmill.SandboxSpec)
	inspect func(*podmill.RuntimePod)
	list    func(before []podmill.Item, snap *podmill.Snapshot)
	stop    func(ctx context.Context, id string, grace time.Duration) error
	remove  func(ctx context.Context, id string) error
	start   func(ctx context.Context, id string) error
	exec    func(*podmill.ExecResult) error

	stopSandbox, removeSandbox func(ctx context.Context, id string) error
	inspectImage               func(ctx context.Context, image string) (*podmill.Image, error)
	pull                       func(*podmill.ImagePull)
	removeImage                func(ctx context.Context, image string) error
	event                      func(e podmill.RuntimeEvent, on func(podmill.RuntimeEvent))
}

func (b *broken) Unwrap() podmill.Runtime { return b.Runtime }

func (b *broken) CreateContainer(ctx context.Context, spec *podmill.ContainerSpec) (string, error) {
	if b.create != nil {
		changed := *spec
		b.create(&changed)
		spec = &changed
	}
	return b.Runtime.CreateContainer(ctx, spec)
}

func (b *broken) RunSandbox(ctx context.Context, spec *podmill.SandboxSpec) (string, error) {
	if b.sandbox != nil {
		changed := *spec
		b.sandbox(&changed)
		spec = &changed
	}
	return b.Runtime.RunSandbox(ctx, spec)
}

func (b *broken) InspectPod(ctx context.Context, uid types.UID) (*podmill.RuntimePod, error) {
	seen, err := b.Runtime.InspectPod(ctx, uid)
	if err == nil && b.inspect != nil {
		b.inspect(seen)
	}
	return seen, err
}

func (b *broken) ListPods(ctx context.Context, snap *podmill.Snapshot) error {
	before := slices.Clone(snap.Items)
	err := b.Runtime.ListPods(ctx, snap)
	if err == nil && b.list != nil {
		b.list(before, snap)
	}
	return err
}

func (b *broken) StopContainer(ctx context.Context, id string, grace time.Duration) error {
	if b.stop != nil {
		return b.stop(ctx, id, grace)
	}
	return b.Runtime.StopContainer(ctx, id, grace)
}

func (b *broken) RemoveContainer(ctx context.Context, id string) error {
	if b.remove != nil {
		return b.remove(ctx, id)
	}
	return b.Runtime.RemoveContainer(ctx, id)
}

func (b *broken) StartContainer(ctx context.Context, id string) error {
	if b.start != nil {
		return b.start(ctx, id)
	}
	return b.Runtime.StartContainer(ctx, id)
}

func (b *broken) Exec(ctx context.Context, id string, command []string) (*podmill.ExecResult, error) {
	result, err := b.Runtime.Exec(ctx, id, command)
	if err == nil && b.exec != nil {
		err = b.exec(result)
	}
	return result, err
}

func (b *broken) StopSandbox(ctx context.Context, id string) error {
	if b.stopSandbox != nil {
		return b.stopSandbox(ctx, id)
	}
	return b.Runtime.StopSandbox(ctx, id)
}

func (b *broken) RemoveSandbox(ctx context.Context, id string) error {
	if b.removeSandbox != nil {
		return b.removeSandbox(ctx, id)
	}
	return b.Runtime.RemoveSandbox(ctx, id)
}

func (b *broken) InspectImage(ctx context.Context, image string) (*podmill.Image, error) {
	if b.inspectImage != nil {
		return b.inspectImage(ctx, image)
	}
	return b.Runtime.InspectImage(ctx, image)
}

func (b *broken) PullImage(ctx context.Context, pull *podmill.ImagePull) (string, error) {
	if b.pull != nil {
		changed := *pull
		b.pull(&changed)
		pull = &changed
	}
	return b.Runtime.PullImage(ctx, pull)
}

func (b *broken) RemoveImage(ctx context.Context, image string) error {
	if b.removeImage != nil {
		return b.removeImage(ctx, image)
	}
	return b.Runtime.RemoveImage(ctx, image)
}

func (b *broken) StreamEvents(ctx context.Context, connected func(), on func(podmill.RuntimeEvent)) error {
	streamer, _ := podmill.As[podmill.EventStreamer](b.Runtime)
	return streamer.StreamEvents(ctx, connected, func(e podmill.RuntimeEvent) {
		if b.event != nil {
			b.event(e, on)
		} else {
			on(e)
		}
	})
}

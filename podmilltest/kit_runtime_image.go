package podmilltest

import (
	"errors"
	"slices"

	"github.com/podmill/podmill"
)

func testLocalImage(k *runtimeKit) {
	image, err := k.Runtime.InspectImage(k.ctx, k.Image)
	k.ok("InspectImage", err)
	if image.ID == "" {
		k.Error("the image has no ID")
	}
	byID, err := k.Runtime.InspectImage(k.ctx, image.ID)
	k.ok("InspectImage by ID", err)
	if byID.ID != image.ID {
		k.Errorf("by its ID the image is %s, want %s", byID.ID, image.ID)
	}
	images, err := k.Runtime.ListImages(k.ctx)
	k.ok("ListImages", err)
	if !slices.ContainsFunc(images, func(i podmill.Image) bool { return i.ID == image.ID }) {
		k.Errorf("image %s is not among the %d that ListImages returned", image.ID, len(images))
	}
	k.ok("RemoveImage of one that is not there", k.Runtime.RemoveImage(k.ctx, k.Absent))
	_, err = k.Runtime.PullImage(k.ctx, &podmill.ImagePull{Image: k.Absent})
	k.fails("PullImage of one that is nowhere", err)
}

func testPullImage(k *runtimeKit) {
	k.given("Pull", k.Pull != "")
	spec := k.pod()
	sandbox := k.runSandbox(spec)
	pull := &podmill.ImagePull{Image: k.Pull, Auth: k.PullAuth, Sandbox: spec}
	if k.PullAuth != nil {
		_, err := k.Runtime.PullImage(k.ctx, &podmill.ImagePull{Image: k.Pull, Sandbox: spec})
		k.fails("PullImage without credentials", err)
	}
	image, err := k.Runtime.PullImage(k.ctx, pull)
	k.ok("PullImage", err)
	again, err := k.Runtime.PullImage(k.ctx, pull)
	k.ok("PullImage of one that is here", err)
	if image != again {
		k.Errorf("pulled twice, the image is %q and then %q", image, again)
	}
	c := k.container(spec, sandbox, k.Commands.Exit(4))
	c.Image = image
	container := k.start(c)
	if seen := k.exited(spec.Pod, container); seen.ExitCode != 4 {
		k.Errorf("exit code %d, want 4", seen.ExitCode)
	}
	k.ok("RemoveContainer", k.Runtime.RemoveContainer(k.ctx, container))
	for range 2 {
		k.ok("RemoveImage", k.Runtime.RemoveImage(k.ctx, image))
	}
	for _, name := range []string{image, k.Pull} {
		if _, err := k.Runtime.InspectImage(k.ctx, name); !errors.Is(err, podmill.ErrNotFound) {
			k.Errorf("InspectImage %s when it is removed: error %v, want ErrNotFound", name, err)
		}
	}
}

package cri

import (
	"context"
	"fmt"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill"
)

// PullImage pulls an image, for as long as ctx lets it: how long a pull without progress may last is the runtime's to say. Neither the
// credentials nor what signs a registry's links is in the error.
func (c *Client) PullImage(ctx context.Context, pull *podmill.ImagePull) (string, error) {
	request := &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: pull.Image, RuntimeHandler: pull.RuntimeHandler}}
	if a := pull.Auth; a != nil {
		request.Auth = &runtimeapi.AuthConfig{
			Username: a.Username, Password: a.Password, Auth: a.Auth, ServerAddress: a.ServerAddress,
			IdentityToken: a.IdentityToken, RegistryToken: a.RegistryToken,
		}
	}
	if pull.Sandbox != nil {
		var err error
		if request.SandboxConfig, err = c.translate.sandbox(pull.Sandbox); err != nil {
			return "", err
		}
	}
	o := op{method: "PullImage", subject: pull.Image}
	r, err := call(ctx, c, o, c.pull, request)
	return o.id(r.GetImageRef(), err)
}

// InspectImage looks at a local image.
func (c *Client) InspectImage(ctx context.Context, image string) (*podmill.Image, error) {
	r, err := call(ctx, c, op{"ImageStatus", image, c.opts.timeout}, c.images.ImageStatus,
		&runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: image}})
	if err != nil {
		return nil, err
	}
	if r.GetImage() == nil {
		return nil, fmt.Errorf("image %q: %w", image, podmill.ErrNotFound)
	}
	out := observedImage(r.GetImage())
	return &out, nil
}

// ListImages lists the local images.
func (c *Client) ListImages(ctx context.Context) ([]podmill.Image, error) {
	r, err := call(ctx, c, op{method: "ListImages", timeout: c.opts.timeout}, c.images.ListImages, &runtimeapi.ListImagesRequest{})
	if err != nil {
		return nil, err
	}
	images := make([]podmill.Image, len(r.GetImages()))
	for i, image := range r.GetImages() {
		images[i] = observedImage(image)
	}
	return images, nil
}

// RemoveImage removes an image with all its names. It is removed by its ID: by a name, some runtimes take away that name only.
func (c *Client) RemoveImage(ctx context.Context, image string) error {
	found, err := c.InspectImage(ctx, image)
	if err != nil {
		return absent(err)
	}
	_, err = call(ctx, c, op{"RemoveImage", image, c.opts.timeout}, c.images.RemoveImage,
		&runtimeapi.RemoveImageRequest{Image: &runtimeapi.ImageSpec{Image: found.ID}})
	return absent(err)
}

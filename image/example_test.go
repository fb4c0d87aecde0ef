package image_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/image"
	"github.com/podmill/podmill/podmilltest"
)

// A container's image is pulled; that of another is not to be had.
func Example() {
	ctx := context.Background()
	runtime := podmilltest.NewRuntime(podmilltest.WithRegistry(
		podmilltest.RemoteImage{Image: podmilltest.Image{Ref: "shop/web:1", User: "1000", Size: 4096}},
		podmilltest.RemoteImage{Image: podmilltest.Image{Ref: "shop/db:1"}, Err: errors.New("connection refused")},
	))
	defer runtime.Close()
	p := image.New(runtime, image.WithMaxParallel(1))

	pod := &corev1.Pod{}
	web := &corev1.Container{Name: "web", Image: "shop/web:1"}
	img, err := p.EnsureImage(ctx, pod, web, nil, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(*img.UID, img.Size)

	db := &corev1.Container{Name: "db", Image: "shop/db:1"}
	for range 2 {
		_, err = p.EnsureImage(ctx, pod, db, nil, nil)
		var reason *podmill.ReasonError
		if errors.As(err, &reason) {
			fmt.Println(reason.Reason)
		}
	}
	// Output:
	// 1000 4096
	// ErrImagePull
	// ImagePullBackOff
}

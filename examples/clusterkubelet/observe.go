package main

import (
	"context"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/node"
)

// imagesFor is how long a list of images is good for a Node: a runtime is not asked for it with every look.
const imagesFor = time.Minute

// observer says how the node does. Its looks come one after another.
type observer struct {
	config   *config
	hardware node.State
	runtime  interface {
		podmill.StatusReporter
		podmill.ImageStore
	}
	healthy   func() error // what is wrong with the agent
	pressures *node.Pressures
	inUse     func(ctx context.Context) []corev1.UniqueVolumeName
	down      atomic.Bool // the node shuts down

	images []corev1.ContainerImage
	listed time.Time
}

// state says what the node is, and how it does.
func (o *observer) state(ctx context.Context) node.State {
	var shutdown error
	if o.down.Load() {
		shutdown = node.ErrShuttingDown
	}
	s := o.hardware
	s.Conditions = o.pressures.Conditions(o.config.Readings(), time.Now())
	s = o.config.State(ctx, s, o.runtime, o.healthy(), shutdown)
	s.VolumesInUse = o.inUse(ctx)
	s.Images = o.listImages(ctx) // last: a slow list would leave no time to ask how the runtime is
	return s
}

// listImages returns the images of the node, as they were a minute ago at most. If the runtime does not tell, what it told last stays.
func (o *observer) listImages(ctx context.Context) []corev1.ContainerImage {
	if now := time.Now(); o.listed.IsZero() || now.Sub(o.listed) >= imagesFor {
		if images, err := o.runtime.ListImages(ctx); err == nil {
			o.images, o.listed = node.Images(images), now
		}
	}
	return o.images
}

package image

import (
	"time"

	"github.com/podmill/podmill"
)

// Option changes a default of a [Puller].
type Option func(*options)

type options struct {
	secrets  podmill.Secrets
	events   podmill.EventRecorder
	observer Observer
	slots    chan struct{} // nil is without bound
}

// WithSecrets says where pull secrets are; without it a pod's are not found, and its images are pulled without credentials.
func WithSecrets(secrets podmill.Secrets) Option { return func(o *options) { o.secrets = secrets } }

// WithEvents says who is told what people should know; without it nobody is.
func WithEvents(events podmill.EventRecorder) Option { return func(o *options) { o.events = events } }

// WithObserver says who is told of what happens.
func WithObserver(observer Observer) Option { return func(o *options) { o.observer = observer } }

// WithMaxParallel bounds how many images are pulled at a time; 1 pulls one after another. The default, and zero, is no bound.
func WithMaxParallel(pulls int) Option {
	return func(o *options) {
		o.slots = nil
		if pulls > 0 {
			o.slots = make(chan struct{}, pulls)
		}
	}
}

// Observer is told of what a puller does. A nil func is not called; each returns at once.
type Observer struct {
	// Pulled follows each pull, which several pods may have waited for, and which may have tried several credentials. took is without the time
	// spent waiting for other pulls; size is in bytes, zero after an error.
	Pulled func(image string, size uint64, took time.Duration, err error)
}

func (o Observer) pulled(image string, size uint64, took time.Duration, err error) {
	if o.Pulled != nil {
		o.Pulled(image, size, took, err)
	}
}

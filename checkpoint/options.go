package checkpoint

import "time"

// Option changes a default of a [Checkpoint].
type Option func(*options)

type options struct {
	patience time.Duration
	observer Observer
}

const (
	// gather is how long a change waits for others, to be written with them.
	gather = 50 * time.Millisecond
	// retry is how long to wait after a write that failed.
	retry = 10 * time.Second
	// silence is how long an answer that did not come lets others not be waited for.
	silence = 30 * time.Second
)

func newOptions(opts []Option) options {
	o := options{patience: 3 * time.Second}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// WithPatience is how long a source, or who has the objects, may be silent before what is kept is used; the default is 3 s. What runs already when an agent
// starts runs on meanwhile.
func WithPatience(d time.Duration) Option { return func(o *options) { o.patience = d } }

// WithObserver says who is told of what happens.
func WithObserver(observer Observer) Option { return func(o *options) { o.observer = observer } }

// Observer is told of what a checkpoint does. A nil func is not called; each returns at once.
type Observer struct {
	// Written follows each write to disk: how many values and bytes, and how long it took.
	Written func(values, bytes int, took time.Duration, err error)
	// Recalled says that a source was silent or has failed, and how many pods were delivered in its place.
	Recalled func(source string, pods int)
}

func (o Observer) written(values, bytes int, took time.Duration, err error) {
	if o.Written != nil {
		o.Written(values, bytes, took, err)
	}
}

func (o Observer) recalled(source string, pods int) {
	if o.Recalled != nil {
		o.Recalled(source, pods)
	}
}

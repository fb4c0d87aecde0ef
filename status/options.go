package status

import (
	"math/rand/v2"
	"time"

	"github.com/podmill/podmill"
)

// Option changes a default of a [Manager].
type Option func(*options)

type options struct {
	parallel int
	debounce time.Duration
	timeout  time.Duration
	flush    time.Duration
	observer Observer
}

func newOptions(opts []Option) options {
	o := options{parallel: 32, debounce: 20 * time.Millisecond, timeout: 30 * time.Second, flush: 2 * time.Second}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// WithParallel bounds how many pods are delivered at a time; the default is 32.
func WithParallel(pods int) Option { return func(o *options) { o.parallel = max(1, pods) } }

// WithDebounce is how long a change that nobody waits for may wait for others; the default is 20 ms.
func WithDebounce(d time.Duration) Option { return func(o *options) { o.debounce = d } }

// WithTimeout bounds one call of the sink; the default is 30 s.
func WithTimeout(d time.Duration) Option { return func(o *options) { o.timeout = d } }

// WithFlushTimeout bounds the last delivery, after Run's context has ended; the default is 2 s.
func WithFlushTimeout(d time.Duration) Option { return func(o *options) { o.flush = d } }

// WithObserver says who is told of what happens.
func WithObserver(observer Observer) Option { return func(o *options) { o.observer = observer } }

// Observer is told of what a manager does. A nil func is not called; each returns at once.
type Observer struct {
	// Sent follows each status that was offered to the sink.
	Sent func(pod podmill.PodRef, took time.Duration, err error)
}

func (o Observer) sent(pod podmill.PodRef, took time.Duration, err error) {
	if o.Sent != nil {
		o.Sent(pod, took, err)
	}
}

// backoff is how long to wait after that many failures in a row: 200 ms, doubling to a minute, with a fifth of jitter.
func (o options) backoff(failures int) time.Duration {
	d := min(time.Minute, 200*time.Millisecond<<min(failures-1, 10))
	return d - d/10 + rand.N(d/5) //nolint:gosec // jitter is no secret
}

package pleg

import (
	"math/rand/v2"
	"time"
)

const (
	// slowLook is when an inspection stops to count among those that may run at a time.
	slowLook = time.Second
	// linger is how long a hint waits for somebody to observe the pod. Where many pods start together, a step of a start takes seconds.
	linger = 10 * time.Second
	// unhealthyAfter is how old the last good listing may be, the kubelet's figure.
	unhealthyAfter = 3 * time.Minute
)

// Option changes a default of a [PLEG].
type Option func(*options)

type options struct {
	period    time.Duration // between listings without a stream of events, or when the last one failed
	streaming time.Duration // between listings while a stream is up
	timeout   time.Duration
	parallel  int
	observer  Observer
}

func newOptions(opts []Option) options {
	o := options{period: time.Second, streaming: time.Minute, timeout: 2 * time.Minute, parallel: 8}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// WithPeriod is the time from one listing to the next where there is no stream of events; the default is the kubelet's, 1 s.
func WithPeriod(d time.Duration) Option { return func(o *options) { o.period = d } }

// WithStreamPeriod is the time from one listing to the next while a stream of events is up; the default is 60 s. Three
// minutes and more leave Healthy nothing to go by.
func WithStreamPeriod(d time.Duration) Option { return func(o *options) { o.streaming = d } }

// WithTimeout bounds one call of the runtime; the default is the kubelet's --runtime-request-timeout, two minutes.
func WithTimeout(d time.Duration) Option { return func(o *options) { o.timeout = d } }

// WithParallel bounds how many inspections that nobody waits for run at a time; the default is 8. Those that last longer than a
// second do not count.
func WithParallel(inspections int) Option {
	return func(o *options) { o.parallel = max(1, inspections) }
}

// WithObserver says who is told of what happens.
func WithObserver(observer Observer) Option { return func(o *options) { o.observer = observer } }

// backoff is how long to wait after that many failures in a row: first, doubling up to half a minute, less up to a fifth.
func backoff(first time.Duration, failures int) time.Duration {
	d := min(30*time.Second, first<<min(failures-1, 10))
	return d - rand.N(d/5+1) //nolint:gosec // jitter is no secret
}

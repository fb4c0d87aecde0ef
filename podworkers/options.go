package podworkers

import (
	"math/rand/v2"
	"time"
)

// Option changes a default of [Workers].
type Option func(*options)

type options struct {
	parallel   int
	resync     time.Duration
	backoff    time.Duration
	maxBackoff time.Duration
	random     func() float64
	observer   Observer
}

func newOptions(opts []Option) options {
	o := options{resync: time.Minute, backoff: 500 * time.Millisecond, maxBackoff: 10 * time.Second, random: rand.Float64}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// WithParallel bounds how many syncs run at a time; those that find no place wait their turn, first come first served. The
// default, and zero, is no bound: a pod whose sync is stuck then delays no other. With a bound, that many stuck pods delay all.
func WithParallel(syncs int) Option { return func(o *options) { o.parallel = syncs } }

// WithResync is how often a pod is synced if nothing happens, plus up to half of it; the default is the kubelet's minute.
// Zero is never.
func WithResync(interval time.Duration) Option { return func(o *options) { o.resync = interval } }

// WithBackoff is how long to wait after a first failure, and at most, before a sync is tried again; in between it doubles
// with each failure in a row, and each wait is shortened by a random part of up to a half. The defaults are 500 ms and the
// kubelet's 10 s.
func WithBackoff(first, most time.Duration) Option {
	return func(o *options) { o.backoff, o.maxBackoff = first, max(first, most) }
}

// WithRandom says where the randomness comes from that spreads syncs: numbers from 0 to below 1. With a func that always returns 0 nothing
// is spread and every run is the same, which is for tests. The default is [rand.Float64].
func WithRandom(random func() float64) Option { return func(o *options) { o.random = random } }

// WithObserver says who is told of what happens.
func WithObserver(observer Observer) Option { return func(o *options) { o.observer = observer } }

func (o options) pace() pace {
	return pace{resync: o.resync, backoff: o.backoff, maxBackoff: o.maxBackoff, random: o.random()}
}

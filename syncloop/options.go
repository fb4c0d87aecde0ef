package syncloop

import (
	"math/rand/v2"
	"time"

	"github.com/podmill/podmill"
)

// stuckAfter is how long the loop may take to come round, the kubelet's figure.
const stuckAfter = 2 * time.Minute

// Option changes a default of a [Loop].
type Option func(*options)

type options struct {
	period   time.Duration
	idle     time.Duration
	runtime  func() ([]*podmill.RuntimePod, bool)
	cleaners []Cleaner
	own      func(*podmill.RuntimePod) bool
	observer Observer
}

func newOptions(opts []Option) options {
	o := options{period: 2 * time.Second, idle: 30 * time.Second, own: func(*podmill.RuntimePod) bool { return true }}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// WithHousekeeping has orphans torn down and the cleaners called, in their order. runtime returns the pods that the runtime holds, false
// until that is known; it returns at once.
func WithHousekeeping(runtime func() (pods []*podmill.RuntimePod, ok bool), cleaners ...Cleaner) Option {
	return func(o *options) { o.runtime, o.cleaners = runtime, cleaners }
}

// WithOwn says which pods that the runtime holds are this agent's to tear down when nothing wants them; the default is all. Those of others are
// no orphans, and whatever they have on the node is not cleaned up either.
func WithOwn(own func(pod *podmill.RuntimePod) bool) Option { return func(o *options) { o.own = own } }

// WithPeriod is the time from one housekeeping to the next; the default is the kubelet's, 2 s. Two minutes and more
// leave Healthy nothing to go by.
func WithPeriod(d time.Duration) Option { return func(o *options) { o.period = d } }

// WithCleaning is the longest time from one round of the cleaners to the next while no pod goes; the default is 30 s.
func WithCleaning(d time.Duration) Option { return func(o *options) { o.idle = d } }

// WithObserver says who is told of what happens.
func WithObserver(observer Observer) Option { return func(o *options) { o.observer = observer } }

// backoff is how long to wait after that many failures in a row: a second, doubling up to half a minute, less up to a fifth.
func backoff(failures int) time.Duration {
	d := min(30*time.Second, time.Second<<min(failures-1, 5))
	return d - rand.N(d/5) //nolint:gosec // jitter is no secret
}

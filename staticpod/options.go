package staticpod

import (
	"net/http"
	"time"
)

// Option changes a default of a source.
type Option func(*options)

type options struct {
	strict   bool
	period   time.Duration
	settle   time.Duration
	maxBytes int64
	observer Observer
	headers  http.Header
	client   http.RoundTripper
}

func newOptions(opts []Option) options {
	o := options{strict: true, period: 20 * time.Second, settle: 100 * time.Millisecond, maxBytes: 10 << 20, client: http.DefaultTransport}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// WithStrict says whether an unknown, misplaced or doubled field keeps a file from being used; the default is true. Otherwise it is only
// reported.
func WithStrict(strict bool) Option { return func(o *options) { o.strict = strict } }

// WithPeriod is how often the source looks for itself, beside what it is told of; the default is the kubelet's 20 s.
func WithPeriod(d time.Duration) Option { return func(o *options) { o.period = d } }

// WithMaxBytes bounds a manifest; the default is 10 MiB.
func WithMaxBytes(n int64) Option { return func(o *options) { o.maxBytes = n } }

// WithObserver says who is told of problems.
func WithObserver(observer Observer) Option { return func(o *options) { o.observer = observer } }

// WithHeaders are sent with every request for a URL, as the kubelet's --manifest-url-header.
func WithHeaders(headers http.Header) Option { return func(o *options) { o.headers = headers } }

// WithTransport carries out the requests for a URL; the default is [http.DefaultTransport].
func WithTransport(transport http.RoundTripper) Option {
	return func(o *options) { o.client = transport }
}

package staticpod

import (
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// maxBytes bounds a manifest, as it is and with its aliases written out. It is the kubelet's bound.
	maxBytes = 10 << 20
	// maxProblems bounds what is said of one manifest.
	maxProblems = 20
	// settleQuiet is how long nothing must have happened in a directory before it is read, so that an editor's several steps are one
	// change, and settleMost how many times as long that is waited for.
	settleQuiet = 100 * time.Millisecond
	settleMost  = 10
	// settleWhole is the same where files are renamed into place: so many of them that come together make one change.
	settleWhole = 500 * time.Microsecond
	// minRetry is the wait after an error. For a URL it doubles up to maxRetry, or the period if that is longer.
	minRetry = time.Second
	maxRetry = time.Minute
	// requestTimeout bounds one request for a URL, to the end of the answer: links may be slow.
	requestTimeout = time.Minute
	// maxRedirects bounds how often an answer may send elsewhere.
	maxRedirects = 5
)

// Option changes a default of a [Directory] or a [URL].
type Option func(*options)

type options struct {
	strict    bool
	period    time.Duration
	observer  Observer
	headers   http.Header
	transport http.RoundTripper
	check     func(pod *corev1.Pod) field.ErrorList
}

func newOptions(opts []Option) options {
	o := options{strict: true, period: 20 * time.Second, transport: http.DefaultTransport, check: func(*corev1.Pod) field.ErrorList { return nil }}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// WithStrict says whether a field that is not known, or given twice, and a kind that is not run here keep a manifest from being
// used; the default is true. With false they are only told of.
func WithStrict(strict bool) Option { return func(o *options) { o.strict = strict } }

// WithPeriod is how often a directory is read although nothing is known to have happened there, and how often a URL is asked; the default is
// the kubelet's 20 s.
func WithPeriod(period time.Duration) Option { return func(o *options) { o.period = period } }

// WithObserver says who is told of problems, beside the log.
func WithObserver(observer Observer) Option { return func(o *options) { o.observer = observer } }

// WithHeaders are sent with every request for a URL, as those of the kubelet's --manifest-url-header.
func WithHeaders(headers http.Header) Option {
	return func(o *options) { o.headers = headers.Clone() }
}

// WithTransport carries out the requests for a URL; the default is [http.DefaultTransport].
func WithTransport(transport http.RoundTripper) Option {
	return func(o *options) { o.transport = transport }
}

// WithCheck says what else is wrong with a pod, such as fields that the agent does not serve. It is reported, with file and line, as what validation
// finds. The func is pure and returns at once.
func WithCheck(check func(pod *corev1.Pod) field.ErrorList) Option {
	return func(o *options) { o.check = check }
}

package staticpod

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// URL is a manifest that a server has, over HTTP or HTTPS. It has pods only: there is nobody to give ConfigMaps and Secrets to.
type URL struct {
	fetcher fetcher
	origin  origin
	period  time.Duration
	tell    teller
	file    file
	got     bool // something usable, at some time
}

var _ podmill.PodSource = (*URL)(nil)

// NewURL returns a source of the manifest at a URL, for the node of that name. It starts nothing.
func NewURL(address, node string, opts ...Option) *URL {
	o := newOptions(opts)
	name := withoutSecrets(address)
	return &URL{
		fetcher: fetcher{
			address: address,
			headers: o.headers,
			client:  http.Client{Transport: o.transport, Timeout: requestTimeout, CheckRedirect: stay},
		},
		origin: origin{source: sourceHTTP, location: name, node: node, strict: o.strict, check: o.check},
		period: o.period,
		tell:   teller{observer: o.observer},
		file:   file{name: name},
	}
}

// Name is "http".
func (u *URL) Name() string { return sourceHTTP }

// Run delivers the pods at the URL, and again when they change, always as a whole; for the first time when something usable was got. It
// returns nil when ctx ends, and not before.
func (u *URL) Run(ctx context.Context, deliver func(podmill.PodUpdate)) error {
	log := logr.FromContextOrDiscard(ctx).WithValues("source", sourceHTTP)
	var delivered []*corev1.Pod
	synced := false
	for failures := 0; ; {
		wait := u.period
		now, failure := u.poll(ctx)
		select {
		case <-ctx.Done():
			return nil
		default:
		}
		if failure != nil {
			failures++
			wait = retry(failures, u.period)
			u.tell.tell(log, []Problem{*failure})
		} else {
			failures = 0
			u.tell.tell(log, now.problems)
			if u.got && (!synced || !slices.Equal(delivered, now.pods)) {
				deliver(podmill.PodUpdate{Op: podmill.ReplacePods, Pods: slices.Clone(now.pods)})
				delivered, synced = now.pods, true
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(jitter(wait)):
		}
	}
}

// retry is how long to wait after a number of failures in a row.
func retry(failures int, period time.Duration) time.Duration {
	return min(minRetry<<min(failures-1, 10), max(period, maxRetry))
}

// jitter keeps many nodes from asking at one time.
func jitter(d time.Duration) time.Duration {
	return d - d/10 + rand.N(d/5+1)
}

// poll asks for the manifest and takes what is new.
func (u *URL) poll(ctx context.Context) (*set, *Problem) {
	data, err := u.fetcher.fetch(ctx)
	if err != nil {
		return nil, &Problem{File: u.file.name, Message: err.Error(), Cure: "what it held goes on until it can be read"}
	}
	if data != nil {
		u.file.take(u.origin, data, time.Now())
		u.got = u.got || usable(u.file.problems)
	}
	return merge([]*file{&u.file}), nil
}

// withoutSecrets leaves out of a URL what may be a password or a token. What is left is what identifies it: a new token makes no new pods.
func withoutSecrets(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the URL"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

package staticpod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// requestTimeout bounds one request; maxBackoff how rarely a URL that fails is asked.
const (
	requestTimeout = 30 * time.Second
	maxBackoff     = 5 * time.Minute
)

// URL is a manifest behind an HTTP or HTTPS URL. ConfigMaps and Secrets in it are not used.
type URL struct {
	url    string
	node   string
	opts   options
	client http.Client
	tell   teller
	file   file
	etag   string
	since  string // Last-Modified
}

// NewURL returns a source of the manifest at url, for a node of that name. It asks every 20 s ([WithPeriod]), less often while that fails, and keeps
// what it last got.
func NewURL(url, node string, opts ...Option) *URL {
	u := &URL{url: url, node: node, opts: newOptions(opts), file: file{name: url}}
	u.tell.observer = u.opts.observer
	u.client = http.Client{Transport: u.opts.client, Timeout: requestTimeout, CheckRedirect: sameHost}
	return u
}

// sameHost follows redirects that stay where they are, so that who answers for the URL cannot be changed by what is there.
func sameHost(next *http.Request, via []*http.Request) error {
	if len(via) > 5 {
		return errors.New("too many redirects")
	}
	if next.URL.Host != via[0].URL.Host || next.URL.Scheme != via[0].URL.Scheme {
		return fmt.Errorf("it redirects to another host, %s, which is not followed: give that URL if it is right", next.URL.Host)
	}
	return nil
}

// Name is "http".
func (u *URL) Name() string { return "http" }

// Run delivers the pods at the URL, and again when they change.
func (u *URL) Run(ctx context.Context, deliver func(podmill.PodUpdate)) error {
	log := logr.FromContextOrDiscard(ctx)
	var last []*corev1.Pod
	delivered := false
	for failures := 0; ; {
		err := u.fetch(ctx)
		if ctx.Err() != nil {
			return nil
		}
		problems := u.file.problems
		if err != nil {
			failures++
			problems = []Problem{{File: u.url, Message: err.Error()}}
		} else {
			failures = 0
			now := merge([]*file{&u.file})
			problems = now.problems
			// A first manifest that is no good says nothing: what may run because of it must not be stopped.
			if good := delivered || usable(u.file.problems); good && (!delivered || !slices.Equal(now.pods, last)) {
				deliver(podmill.PodUpdate{Op: podmill.ReplacePods, Pods: now.pods})
				last, delivered = now.pods, true
			}
		}
		u.tell.tell(log, problems)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(u.wait(failures)):
		}
	}
}

// wait is the time until the next request: the period, doubled with each failure in a row, less up to a tenth.
func (u *URL) wait(failures int) time.Duration {
	d := u.opts.period << min(failures, 5)
	d = max(u.opts.period, min(d, maxBackoff))
	return d - rand.N(d/10+1) //nolint:gosec // jitter is no secret
}

// fetch asks for the manifest, unless it is as it was.
func (u *URL) fetch(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.url, nil)
	if err != nil {
		return fmt.Errorf("the URL cannot be asked: %w", err)
	}
	for name, values := range u.opts.headers {
		request.Header[name] = values
	}
	if u.etag != "" {
		request.Header.Set("If-None-Match", u.etag)
	} else if u.since != "" {
		request.Header.Set("If-Modified-Since", u.since)
	}
	response, err := u.client.Do(request)
	if err != nil {
		return fmt.Errorf("it cannot be read, and what is known of it goes on: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	switch response.StatusCode {
	case http.StatusNotModified:
		return nil
	case http.StatusOK:
	default:
		return fmt.Errorf("it cannot be read, and what is known of it goes on: the server answers %s", response.Status)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, u.opts.maxBytes+1))
	if err != nil {
		return fmt.Errorf("it broke off, and what is known of it goes on: %w", err)
	}
	if int64(len(data)) > u.opts.maxBytes {
		return fmt.Errorf("it is larger than %d bytes; no manifest is", u.opts.maxBytes)
	}
	u.etag, u.since = response.Header.Get("ETag"), response.Header.Get("Last-Modified")
	if string(data) == u.file.content && u.file.content != "" {
		return nil
	}
	found, problems := decoder{source: u.Name(), node: u.node, strict: u.opts.strict}.decode(u.url, data)
	u.file.refresh(string(data), found, problems)
	return nil
}

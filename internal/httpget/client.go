package httpget

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

const (
	// MaxBody is how much of an answer's body is read, in bytes. The rest is not waited for.
	MaxBody = 10 << 10
	// maxHeader is what an answer may take before its body, interim answers included. Whoever sends more has failed.
	maxHeader = 64 << 10
	// maxRedirects is how often an answer may send the client on.
	maxRedirects = 10
)

// Client sends the requests of actions by the kubelet's rules: it takes no proxy, checks no certificate, uses each connection
// once, and follows redirects on the same host only. It may be used concurrently.
type Client struct {
	transport http.RoundTripper
}

// NewClient returns a client. There is nothing to close: it keeps no connection.
func NewClient() *Client {
	return &Client{transport: &http.Transport{
		// A certificate names what others call the server, and the client has an address alone.
		TLSClientConfig:        &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // as documented for HTTPGetAction
		DialContext:            (&net.Dialer{}).DialContext,
		ForceAttemptHTTP2:      true,
		DisableKeepAlives:      true,
		DisableCompression:     true, // a body that unpacks itself has no bound
		MaxResponseHeaderBytes: maxHeader,
	}}
}

// Answer is what came back.
type Answer struct {
	Status int
	Body   []byte // at most [MaxBody] bytes of it
}

// OK says that the status is from 200 to 399: success, as a probe understands it.
func (a *Answer) OK() bool { return a.Status >= http.StatusOK && a.Status < http.StatusBadRequest }

// Redirect says that the answer sends the client to another host, where it did not go.
func (a *Answer) Redirect() bool {
	return a.Status >= http.StatusMultipleChoices && a.Status < http.StatusBadRequest
}

// Do sends a request and reads its answer, within timeout and the request's context; a timeout of zero is none. An answer of
// any status is no error; one that stops halfway is, and comes with what was read of it.
func (c *Client) Do(req *http.Request, timeout time.Duration) (*Answer, error) {
	client := http.Client{Transport: c.transport, CheckRedirect: sameHost, Timeout: timeout}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxBody))
	if err != nil {
		err = fmt.Errorf("read the body: %w", err)
	}
	return &Answer{Status: resp.StatusCode, Body: body}, err
}

// sameHost lets a client follow a redirect within the host that it was sent to, whatever the port; so no pod makes the node fetch from
// somewhere else. The first request counts among the ten.
func sameHost(req *http.Request, via []*http.Request) error {
	if req.URL.Hostname() != via[0].URL.Hostname() {
		return http.ErrUseLastResponse
	}
	if len(via) >= maxRedirects {
		return errors.New("stopped after 10 redirects")
	}
	return nil
}

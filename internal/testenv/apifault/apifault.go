// Package apifault stands between a client and an API server and lets things go wrong: errors, answers that are lost, connections that break, watches that fall silent. It
// knows requests by what they ask for, counts them, and does not care whether the server behind it is a real one.
package apifault

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Request is what is asked of an API server, in the words of its authorizers.
type Request struct {
	Verb        string // get, list, watch, create, update, patch or delete
	Resource    string
	Subresource string
	Namespace   string
	Name        string
}

// String is the request in one line.
func (r Request) String() string {
	return strings.TrimRight(fmt.Sprintf("%s %s/%s/%s/%s", r.Verb, r.Resource, r.Namespace, r.Name, r.Subresource), "/")
}

// Is reports whether a request is of a kind; what the kind leaves open is any.
func (r Request) Is(kind Request) bool {
	is := func(a, b string) bool { return b == "" || a == b }
	return is(r.Verb, kind.Verb) && is(r.Resource, kind.Resource) && is(r.Namespace, kind.Namespace) && is(r.Name, kind.Name) &&
		(kind.Resource == "" || r.Subresource == kind.Subresource)
}

// Parse says what an HTTP request asks for.
func Parse(r *http.Request) Request {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if path = path[min(2, len(path)):]; strings.HasPrefix(r.URL.Path, "/apis/") && len(path) > 0 {
		path = path[1:]
	}
	var q Request
	if len(path) > 2 && path[0] == "namespaces" {
		q.Namespace, path = path[1], path[2:]
	}
	for i, into := range []*string{&q.Resource, &q.Name, &q.Subresource} {
		if i < len(path) {
			*into = path[i]
		}
	}
	q.Verb = map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete"}[r.Method]
	switch {
	case q.Verb != "":
	case r.URL.Query().Get("watch") != "":
		q.Verb = "watch"
	case q.Name == "":
		q.Verb = "list"
	default:
		q.Verb = "get"
	}
	return q
}

// Effect is what happens in place of a request, which it may make.
type Effect func(r *http.Request, next http.RoundTripper) (*http.Response, error)

// Status is answered in place of the server.
func Status(code int, reason metav1.StatusReason) Effect { return RetryAfter(code, reason, 0) }

// RetryAfter is Status with the word when to try again.
func RetryAfter(code int, reason metav1.StatusReason, seconds int) Effect {
	return func(*http.Request, http.RoundTripper) (*http.Response, error) {
		status := metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: reason, Message: "injected: " + string(reason), Code: int32(code), //nolint:gosec // of HTTP
		}
		response := answer(code, status)
		if seconds > 0 {
			response.Header.Set("Retry-After", strconv.Itoa(seconds))
		}
		return response, nil
	}
}

// ExpiredWatch begins a watch, and says at once that it is too old to go on.
func ExpiredWatch() Effect {
	return func(*http.Request, http.RoundTripper) (*http.Response, error) {
		return answer(http.StatusOK, metav1.WatchEvent{Type: "ERROR", Object: rawStatus()}), nil
	}
}

// Refuse lets no connection come about.
func Refuse() Effect {
	return func(*http.Request, http.RoundTripper) (*http.Response, error) {
		return nil, errors.New("injected: connection refused")
	}
}

// Lose has the server do what is asked, and loses its answer.
func Lose() Effect {
	return func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if response, err := next.RoundTrip(r); err == nil {
			_ = response.Body.Close()
		}
		return nil, errors.New("injected: connection reset by peer")
	}
}

// Hang gives no answer.
func Hang() Effect {
	return func(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
}

// Slow lets a round trip take longer.
func Slow(d time.Duration) Effect {
	return func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		select {
		case <-time.After(d):
			return next.RoundTrip(r)
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}

// Rewrite has the server do what is asked, and changes what it answers, which is JSON.
func Rewrite(change func(object map[string]any)) Effect {
	return func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.Header.Set("Accept", "application/json")
		r.Header.Del("Accept-Encoding")
		response, err := next.RoundTrip(r)
		if err != nil || response.StatusCode >= http.StatusBadRequest {
			return response, err
		}
		defer response.Body.Close()
		object := map[string]any{}
		if err := json.NewDecoder(response.Body).Decode(&object); err != nil {
			return nil, fmt.Errorf("decode the answer to %s: %w", Parse(r), err)
		}
		change(object)
		return answer(response.StatusCode, object), nil
	}
}

// ShortLived has the tokens that the server makes look as if they ended after a time, which is shorter than what it can be asked for.
func ShortLived(life time.Duration) Effect {
	return Rewrite(func(token map[string]any) {
		if status, ok := token["status"].(map[string]any); ok {
			status["expirationTimestamp"] = time.Now().Add(life).UTC().Format(time.RFC3339)
		}
	})
}

func answer(code int, object any) *http.Response {
	data, _ := json.Marshal(object)
	return &http.Response{
		StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(append(data, '\n'))), ContentLength: int64(len(data) + 1),
	}
}

// Fault says which requests go wrong, and how.
type Fault struct {
	On    Request // what is empty is any
	After int     // so many pass first
	Times int     // so many go wrong then; 0 is all of them
	Effect
}

// Faults is a way to a server on which things go wrong. Its methods may be called concurrently.
type Faults struct {
	next http.RoundTripper

	mu     sync.Mutex
	armed  []*armed
	seen   []Request
	bodies map[*body]bool
	muted  chan struct{} // closed when watches speak again; nil while they do
}

type armed struct {
	Fault
	passed, struck int
}

// New returns a way to the server behind next on which nothing goes wrong yet.
func New(next http.RoundTripper) *Faults { return &Faults{next: next, bodies: map[*body]bool{}} }

// Add lets more go wrong. Of several faults for one request, the first has its way.
func (f *Faults) Add(faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, fault := range faults {
		f.armed = append(f.armed, &armed{Fault: fault})
	}
}

// Clear lets nothing go wrong any more.
func (f *Faults) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = nil
	if f.muted != nil {
		close(f.muted)
		f.muted = nil
	}
}

// Struck returns how often things went wrong since the last Clear.
func (f *Faults) Struck() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, a := range f.armed {
		n += a.struck
	}
	return n
}

// Mute lets the watches that are open say nothing more until Clear; new ones do.
func (f *Faults) Mute() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.muted == nil {
		f.muted = make(chan struct{})
	}
	for b := range f.bodies {
		b.mute(f.muted)
	}
}

// Cut breaks all connections that are open.
func (f *Faults) Cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for b := range f.bodies {
		b.cut()
	}
}

// Take returns what was asked since the last call, also what went wrong.
func (f *Faults) Take() []Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := f.seen
	f.seen = nil
	return seen
}

// RoundTrip implements [http.RoundTripper].
func (f *Faults) RoundTrip(r *http.Request) (*http.Response, error) {
	request := Parse(r)
	response, err := f.effect(request)(r, f.next)
	if err != nil || request.Verb != "watch" {
		return response, err
	}
	b := &body{ReadCloser: response.Body, faults: f, broken: make(chan struct{})}
	response.Body = b
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bodies[b] = true
	return response, nil
}

// effect notes a request, and returns what happens to it.
func (f *Faults) effect(request Request) Effect {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, request)
	for _, a := range f.armed {
		if !request.Is(a.On) {
			continue
		}
		if a.passed < a.After {
			a.passed++
			continue
		}
		if a.Times == 0 || a.struck < a.Times {
			a.struck++
			return a.Effect
		}
	}
	return func(r *http.Request, next http.RoundTripper) (*http.Response, error) { return next.RoundTrip(r) }
}

package httpget

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// get sends the request of an action to a server.
func get(t *testing.T, addr net.Addr, scheme corev1.URIScheme, path string, timeout time.Duration, headers ...corev1.HTTPHeader) (*Answer, error) {
	t.Helper()
	tcp := addr.(*net.TCPAddr)
	req, err := Request(t.Context(), &corev1.HTTPGetAction{
		Scheme: scheme, Path: path, Port: intstr.FromInt32(int32(tcp.Port)), HTTPHeaders: headers,
	}, web, tcp.IP.String(), ForProbe)
	if err != nil {
		t.Fatal(err)
	}
	return NewClient().Do(req, timeout)
}

// serve answers each connection with what raw writes, and closes it.
func serve(t *testing.T, raw func(io.Writer)) net.Addr {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { _ = l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				raw(c)
			}
			_ = c.Close()
		}
	}()
	return l.Addr()
}

// B080: what goes over the wire.
func TestClientSends(t *testing.T) {
	var got *http.Request
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r }))
	defer s.Close()
	a, err := get(t, s.Listener.Addr(), "", "/x?q=1", time.Second,
		corev1.HTTPHeader{Name: "host", Value: "a.example"}, corev1.HTTPHeader{Name: "User-Agent"}, corev1.HTTPHeader{Name: "accept"})
	if err != nil || a.Status != 200 || !a.OK() || a.Redirect() {
		t.Fatal(a, err)
	}
	if got.Host != "a.example" || got.RequestURI != "/x?q=1" || !got.Close {
		t.Errorf("host %q, URI %q, close %v", got.Host, got.RequestURI, got.Close)
	}
	if len(got.Header) != 1 { // Connection: close
		t.Errorf("headers that nobody asked for: %v", got.Header)
	}
}

func TestClientChecksNoCertificate(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) }))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	a, err := get(t, s.Listener.Addr(), corev1.URISchemeHTTPS, "/", time.Second)
	if err != nil || string(a.Body) != "HTTP/2.0" {
		t.Fatal(a, err)
	}
}

// A hook that finds plain HTTP behind HTTPS tries again without; it has to be able to tell.
func TestClientTellsPlainHTTP(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	if _, err := get(t, s.Listener.Addr(), corev1.URISchemeHTTPS, "/", time.Second); !errors.Is(err, http.ErrSchemeMismatch) {
		t.Fatal(err)
	}
}

func TestClientUsesAConnectionOnce(t *testing.T) {
	var conns atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	c := NewClient()
	for range 3 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Do(req, time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if n := conns.Load(); n != 3 {
		t.Errorf("%d connections for 3 requests", n)
	}
}

func TestClientRedirects(t *testing.T) {
	var visits atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "other port") }))
	defer other.Close()
	mux := http.NewServeMux()
	mux.HandleFunc("/self", func(w http.ResponseWriter, r *http.Request) {
		visits.Add(1)
		http.Redirect(w, r, "/self", http.StatusFound)
	})
	mux.HandleFunc("/local", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/end", http.StatusMovedPermanently) })
	mux.HandleFunc("/end", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	mux.HandleFunc("/port", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) })
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://localhost"+strings.TrimPrefix(other.URL, "http://127.0.0.1"), http.StatusFound)
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	addr := s.Listener.Addr()

	if a, err := get(t, addr, "", "/local", time.Second); err != nil || a.Status != http.StatusTeapot || a.OK() {
		t.Error("within the host:", a, err)
	}
	if a, err := get(t, addr, "", "/port", time.Second); err != nil || string(a.Body) != "other port" {
		t.Error("to another port:", a, err)
	}
	if a, err := get(t, addr, "", "/away", time.Second); err != nil || a.Status != http.StatusFound || !a.OK() || !a.Redirect() {
		t.Error("to another host:", a, err)
	}
	_, err := get(t, addr, "", "/self", 5*time.Second)
	if err == nil || !strings.Contains(err.Error(), "stopped after 10 redirects") || visits.Load() != 10 {
		t.Errorf("to itself: %v after %d visits", err, visits.Load())
	}
}

// Servers that flood, hang or hang up cost 10 KB, 64 KB or the timeout.
func TestClientIsBounded(t *testing.T) {
	flood := func(start, line string) func(io.Writer) {
		return func(w io.Writer) {
			_, err := io.WriteString(w, "HTTP/1.1 "+start)
			for n := 0; err == nil && n < 1<<30; n++ {
				_, err = io.WriteString(w, line)
			}
			if err == nil {
				t.Error("1 GB was taken")
			}
		}
	}
	for name, tc := range map[string]struct {
		raw  func(io.Writer)
		body int
		err  string
	}{
		"body":       {flood("200 OK\r\n\r\n", strings.Repeat("x", 4096)), MaxBody, ""},
		"headers":    {flood("200 OK\r\n", strings.Repeat("A: b\r\n", 1000)), 0, "response headers exceeded"},
		"one header": {flood("200 OK ", strings.Repeat("x", 4096)), 0, "response headers exceeded"},
		"interim":    {flood("", "103 Early Hints\r\nA: b\r\n\r\nHTTP/1.1 "), 0, "response headers exceeded"},
		"closes":     {func(io.Writer) {}, 0, "EOF"},
		"halfway":    {func(w io.Writer) { _, _ = io.WriteString(w, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx") }, 0, "read the body: unexpected EOF"},
		"not HTTP":   {func(w io.Writer) { _, _ = io.WriteString(w, "220 mail.example ESMTP\r\n") }, 0, "malformed HTTP"},
		"silent":     {func(w io.Writer) { _, _ = io.ReadAll(w.(net.Conn)) }, 0, "Client.Timeout exceeded while awaiting headers"},
		"silent later": {func(w io.Writer) {
			_, _ = io.WriteString(w, "HTTP/1.1 200 OK\r\n\r\n")
			_, _ = io.ReadAll(w.(net.Conn))
		}, 0, "Client.Timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			timeout := 5 * time.Second
			if strings.Contains(tc.err, "Timeout") {
				timeout = 50 * time.Millisecond
			}
			a, err := get(t, serve(t, tc.raw), "", "/", timeout)
			switch {
			case tc.err == "" && (err != nil || len(a.Body) != tc.body):
				t.Errorf("got %v, %v", a, err)
			case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
				t.Errorf("got %v, want %s", err, tc.err)
			}
		})
	}
}

func TestClientObeysItsContext(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewClient().Do(req, 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
}

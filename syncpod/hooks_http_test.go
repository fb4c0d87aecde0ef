package syncpod_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/podmill/podmill/podmilltest"
)

// hookServer is a real server that hooks ask, outside of the test's virtual time.
type hookServer struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
}

// ServeHTTP implements [http.Handler]. What it answers, and that it breaks off, is not for a hook to judge.
func (s *hookServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	w.Header().Set("Content-Length", "9")
	w.WriteHeader(http.StatusInternalServerError)
	_, _ = w.Write([]byte("oh"))
}

func (s *hookServer) port() intstr.IntOrString {
	return intstr.FromInt32(int32(netip.MustParseAddrPort(s.Listener.Addr().String()).Port()))
}

// Hooks that ask over HTTP: any answer is a success; HTTPS that is none is tried again without the credentials; a pod in the host's network is reached there, also
// where the node's addresses are not known.
func TestHTTPHooks(t *testing.T) {
	for _, tt := range []struct {
		name        string
		tls         bool
		scheme      corev1.URIScheme
		host        string
		pod         podmilltest.PodOption
		credentials bool // reach the server
		tells       string
	}{
		{name: "an error is an answer", host: "127.0.0.1", credentials: true},
		{name: "HTTPS", tls: true, scheme: corev1.URISchemeHTTPS, host: "127.0.0.1", credentials: true},
		{
			name: "HTTPS that is none", scheme: corev1.URISchemeHTTPS, host: "127.0.0.1",
			tells: "event Warning LifecycleHTTPFallback shop/cart: request to HTTPS lifecycle hook ADDRESS got HTTP response, retry with HTTP succeeded",
		},
		{name: "the host's network", pod: podmilltest.HostNetwork(), credentials: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &hookServer{}
			s.Server = httptest.NewUnstartedServer(s)
			if tt.tls {
				s.StartTLS()
			} else {
				s.Start()
			}
			defer s.Close()
			bubble(t, func(t *testing.T, r *rig) {
				get := &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{
					Scheme: tt.scheme, Host: tt.host, Port: s.port(), Path: "/hook", HTTPHeaders: []corev1.HTTPHeader{{Name: "Authorization", Value: "secret"}},
				}}
				opts := []podmilltest.PodOption{podmilltest.Container("web", "img:1", hooked(get, get), deaf)}
				if tt.pod != nil {
					opts = append(opts, tt.pod)
				}
				pod := podmilltest.Pod("shop/cart", opts...)
				r.work(pod, 10*time.Second)
				r.finish(pod, end(5*time.Second))
				if r.has("Failed") || r.has("web#1") || !r.has("StopContainer shop/cart web#0 grace=5s") {
					t.Error(r.story())
				}
				if want := strings.ReplaceAll(tt.tells, "ADDRESS", s.Listener.Addr().String()); r.has("Fallback") != (want != "") || !r.has(want) {
					t.Errorf("the story lacks %q:\n%s", want, r.story())
				}
			})
			if len(s.requests) != 2 {
				t.Fatalf("%d requests, want one for each hook", len(s.requests))
			}
			for _, got := range s.requests {
				if h := got.Header; got.URL.Path != "/hook" || (h.Get("Authorization") != "") != tt.credentials || !strings.HasPrefix(h.Get("User-Agent"), "kube-lifecycle/") {
					t.Errorf("request for %s with %v", got.URL, h)
				}
			}
		})
	}
}

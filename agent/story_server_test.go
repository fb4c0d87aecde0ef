package agent_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
)

// storyServer is what the probes and hooks of stories ask that go over the network: a real one for HTTP, outside of the story's time, which stands still while a
// request is under way; and something that answers as one for gRPC would.
type storyServer struct {
	*httptest.Server
	mu      sync.Mutex
	answers map[string]string
}

func newStoryServer() *storyServer {
	s := &storyServer{answers: map[string]string{}}
	s.Server = httptest.NewServer(s)
	return s
}

func (s *storyServer) port() string {
	return strconv.Itoa(s.Listener.Addr().(*net.TCPAddr).Port)
}

// answer says what is answered from now on. It is well until then.
func (s *storyServer) answer(to, with string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[to] = with
}

func (s *storyServer) answerTo(what string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answers[what]
}

// ServeHTTP implements [http.Handler]. Redirects lead to another host.
func (s *storyServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	code, err := strconv.Atoi(s.answerTo(r.URL.Path))
	if err != nil {
		code = http.StatusOK
	}
	if code == http.StatusFound {
		w.Header().Set("Location", "http://elsewhere.example/")
	}
	w.WriteHeader(code)
	_, _ = fmt.Fprint(w, http.StatusText(code))
}

// check is a [probe.GRPC].
func (s *storyServer) check(_ context.Context, _, service string) error {
	if status := s.answerTo(service); status != "" && status != "SERVING" {
		return fmt.Errorf("service unhealthy (responded with %q)", status)
	}
	return nil
}

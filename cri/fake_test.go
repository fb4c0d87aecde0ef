package cri

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// server is a CRI server in this process, on a real socket. It answers what a test tells it to, and else that it does not implement that.
type server struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	runtimeapi.UnimplementedImageServiceServer
	path string
	grpc *grpc.Server
	done chan struct{} // the test is

	mu      sync.Mutex
	answers map[string]answer
	calls   map[string]int
	stream  func(grpc.ServerStream) error
}

type answer func(ctx context.Context, request any) (any, error)

// says answers a call with a message.
func says(response any) answer {
	return func(context.Context, any) (any, error) { return response, nil }
}

// fails answers a call with an error.
func fails(err error) answer {
	return func(context.Context, any) (any, error) { return nil, err }
}

// hangs does not answer, not even when the caller has gone: that a context has ended is for the client to see.
func (s *server) hangs(context.Context, any) (any, error) {
	<-s.done
	return nil, errors.New("the test has ended")
}

// newServer returns a server that does not listen yet.
func newServer(t testing.TB) *server {
	t.Helper()
	dir, err := os.MkdirTemp("", "cri") // a socket's path is short, and t.TempDir's may not be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &server{path: filepath.Join(dir, "s"), done: make(chan struct{}), calls: map[string]int{}, answers: map[string]answer{
		"Version":       says(&runtimeapi.VersionResponse{RuntimeName: "fake", RuntimeVersion: "1"}),
		"Status":        says(&runtimeapi.StatusResponse{}),
		"RuntimeConfig": says(&runtimeapi.RuntimeConfigResponse{}),
	}}
	t.Cleanup(s.stop)
	t.Cleanup(func() { close(s.done) })
	return s
}

func (s *server) on(method string, a answer) *server {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[method] = a
	return s
}

func (s *server) called(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

// start listens, at the same path each time.
func (s *server) start(t testing.TB) *server {
	t.Helper()
	listener, err := net.Listen("unix", s.path)
	if err != nil {
		t.Fatal(err)
	}
	s.grpc = grpc.NewServer(grpc.UnaryInterceptor(s.unary), grpc.StreamInterceptor(s.streaming))
	runtimeapi.RegisterRuntimeServiceServer(s.grpc, s)
	runtimeapi.RegisterImageServiceServer(s.grpc, s)
	go func(g *grpc.Server) { _ = g.Serve(listener) }(s.grpc)
	return s
}

// stop breaks all connections off.
func (s *server) stop() {
	if s.grpc != nil {
		s.grpc.Stop()
	}
}

func (s *server) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	method := info.FullMethod[strings.LastIndexByte(info.FullMethod, '/')+1:]
	s.mu.Lock()
	s.calls[method]++
	a := s.answers[method]
	s.mu.Unlock()
	if a != nil {
		return a(ctx, request)
	}
	return next(ctx, request)
}

func (s *server) streaming(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if s.stream != nil {
		return s.stream(stream)
	}
	return next(srv, stream)
}

// dial connects a client.
func (s *server) dial(t testing.TB, opts ...Option) *Client {
	t.Helper()
	c, err := Dial(t.Context(), s.path, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// calls counts what an observer is told, and lets a test wait for it.
type calls chan struct{}

func (c calls) observer(method string) Observer {
	return Observer{Called: func(m string, _ time.Duration, _ error) {
		if m == method {
			select {
			case c <- struct{}{}:
			default:
			}
		}
	}}
}

// is fails the test unless err is want, and is nothing that it must not be taken for.
func is(t testing.TB, err, want error, not ...error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
	for _, n := range not {
		if errors.Is(err, n) {
			t.Errorf("error %v is taken for %v", err, n)
		}
	}
}

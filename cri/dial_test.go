package cri

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill"
)

// Each way in which an endpoint can be wrong has an error that says what is wrong there, and what to do.
func TestDialSaysWhatIsWrong(t *testing.T) {
	for name, tc := range map[string]struct {
		endpoint func(t *testing.T, path string) string
		want     string
	}{
		"named pipe":    {func(*testing.T, string) string { return "npipe:////./pipe/containerd" }, "endpoints of the kind npipe are not supported, write unix:///path/to/socket"},
		"TCP":           {func(*testing.T, string) string { return "tcp://127.0.0.1:1" }, "endpoints of the kind tcp are not supported"},
		"relative":      {func(*testing.T, string) string { return "run/containerd.sock" }, "no absolute path, write unix:///"},
		"two slashes":   {func(*testing.T, string) string { return "unix://run/containerd.sock" }, "no absolute path, write unix:///"},
		"empty":         {func(*testing.T, string) string { return "" }, "no absolute path"},
		"long":          {func(*testing.T, string) string { return "/" + strings.Repeat("x", 107) }, "the path has 108 bytes, and that of a socket at most 107"},
		"nothing there": {func(_ *testing.T, path string) string { return path }, "there is no socket at "},
		"a file": {func(t *testing.T, path string) string {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}, "is not a socket"},
		"nobody listens": {func(t *testing.T, path string) string {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
			if err != nil {
				t.Fatal(err)
			}
			l.SetUnlinkOnClose(false)
			_ = l.Close()
			return path
		}, "nobody listens on "},
		"not CRI": {func(t *testing.T, path string) string {
			l, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			s := grpc.NewServer()
			t.Cleanup(s.Stop)
			go func() { _ = s.Serve(l) }()
			return "unix://" + path
		}, "does not speak CRI v1"},
		"not gRPC": {func(t *testing.T, path string) string {
			l, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
			go func() {
				for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
					_, _ = conn.Write([]byte("SSH-2.0-nonsense\r\n"))
					_ = conn.Close()
				}
			}()
			return path
		}, "Version: "},
	} {
		t.Run(name, func(t *testing.T) {
			path := newServer(t).path
			c, err := Dial(t.Context(), tc.endpoint(t, path), WithPatience(0))
			if err == nil {
				_ = c.Close()
				t.Fatal("it succeeded")
			}
			if !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "container runtime at ") {
				t.Errorf("got %v\nwant %s", err, tc.want)
			}
			if errors.Is(err, podmill.ErrNotFound) {
				t.Errorf("%v is taken for an answer", err)
			}
		})
	}
}

func TestOptionsAreChecked(t *testing.T) {
	_, err := Dial(t.Context(), "/run/x.sock", WithTimeout(0), WithCPUPeriod(time.Microsecond), WithSeccompRoot("profiles"))
	for _, want := range []string{"timeout 0s", "CPU period 1µs", `seccomp root "profiles"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not name %s", err, want)
		}
	}
}

// An agent may start before the runtime does.
func TestDialWaitsForTheSocket(t *testing.T) {
	s, tried := newServer(t), make(calls, 1)
	go func() {
		<-tried
		s.start(t)
	}()
	c := s.dial(t, WithPatience(time.Minute), WithObserver(tried.observer("Version")))
	if status, err := c.RuntimeStatus(t.Context()); err != nil || status.Name != "fake" {
		t.Errorf("%+v, %v", status, err)
	}
}

// containerd answers before its CRI plugin has started, in one of two ways.
func TestDialWaitsForThePlugin(t *testing.T) {
	s := newServer(t)
	version := s.answers["Version"]
	starting := []error{
		status.Error(codes.Unimplemented, "unknown service runtime.v1.RuntimeService"),
		status.Error(codes.Unknown, "server is not initialized yet"),
		status.Error(codes.Unavailable, "server is not initialized yet"),
	}
	s.on("Version", func(ctx context.Context, request any) (any, error) {
		if n := s.called("Version"); n <= len(starting) {
			return nil, starting[n-1]
		}
		return version(ctx, request)
	})
	var seen []error
	s.start(t).dial(t, WithPatience(time.Minute), WithObserver(Observer{Called: func(method string, _ time.Duration, err error) {
		if method == "Version" && err != nil {
			seen = append(seen, err)
		}
	}}))
	if len(seen) != len(starting) {
		t.Errorf("errors %v", seen)
	}
	for _, err := range seen {
		// Never ErrUnsupported: the agent would take the runtime for one without events, and not ask again.
		is(t, err, ErrUnavailable, errors.ErrUnsupported, podmill.ErrNotFound)
	}
}

// A runtime that takes calls and does not answer them is as good as none.
func TestDialWithoutAnAnswer(t *testing.T) {
	s := newServer(t)
	s.on("Version", s.hangs)
	c, err := Dial(t.Context(), s.start(t).path, WithPatience(100*time.Millisecond))
	if err == nil {
		_ = c.Close()
	}
	is(t, err, context.DeadlineExceeded, podmill.ErrNotFound)
	if err == nil || !strings.Contains(err.Error(), "Version: no answer within 100ms") {
		t.Errorf("got %v", err)
	}
}

func TestDialEndsWithItsContext(t *testing.T) {
	s, tried := newServer(t), make(calls, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-tried
		cancel()
	}()
	_, err := Dial(ctx, s.path, WithPatience(time.Hour), WithObserver(tried.observer("Version")))
	is(t, err, context.Canceled)
}

// A runtime that was updated is another one: who it is, is asked once for each connection, and again when it is back.
func TestClientOutlivesARestart(t *testing.T) {
	s := newServer(t).on("ListPodSandbox", says(&runtimeapi.ListPodSandboxResponse{})).on("ListContainers", says(&runtimeapi.ListContainersResponse{}))
	s.start(t)
	c := s.dial(t)
	for range 3 {
		if status, err := c.RuntimeStatus(t.Context()); err != nil || status.Version != "1" {
			t.Errorf("%+v, %v", status, err)
		}
	}
	if n, m, o := s.called("Version"), s.called("RuntimeConfig"), s.called("Status"); n != 1 || m != 1 || o != 4 {
		t.Errorf("three statuses after dialing took %d, %d and %d calls, want 1, 1 and 4", n, m, o)
	}

	s.stop()
	_, err := c.InspectPod(t.Context(), "u")
	is(t, err, ErrUnavailable, podmill.ErrNotFound, errors.ErrUnsupported)
	is(t, c.ListPods(t.Context(), &podmill.Snapshot{}), ErrUnavailable, podmill.ErrNotFound)
	is(t, c.StopContainer(t.Context(), "c", 0), ErrUnavailable, podmill.ErrNotFound)

	s.on("Version", says(&runtimeapi.VersionResponse{RuntimeName: "fake", RuntimeVersion: "2"})).start(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for state := c.conn.GetState(); ; state = c.conn.GetState() {
		status, err := c.RuntimeStatus(ctx)
		if err == nil {
			if status.Version != "2" {
				t.Errorf("version %s, want that of now", status.Version)
			}
			return
		}
		is(t, err, ErrUnavailable)
		if !c.conn.WaitForStateChange(ctx, state) {
			t.Fatal(err)
		}
	}
}

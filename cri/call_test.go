package cri

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill"
)

// What an error is taken for decides what an agent does: only the runtime's own "not found" means absent.
func TestErrorsAreWhatTheySay(t *testing.T) {
	kinds := []error{podmill.ErrNotFound, errors.ErrUnsupported, ErrUnavailable, context.DeadlineExceeded, context.Canceled}
	for name, tc := range map[string]struct {
		err  error
		want error // one of kinds, nil for none
	}{
		"not found":               {status.Error(codes.NotFound, "no such container"), podmill.ErrNotFound},
		"not found, in words":     {status.Error(codes.Unknown, "container not found"), nil},
		"unknown":                 {status.Error(codes.Unknown, "failed to set up the network"), nil},
		"no such method":          {status.Error(codes.Unimplemented, "unknown method StartContainer for service runtime.v1.RuntimeService"), errors.ErrUnsupported},
		"no such service":         {status.Error(codes.Unimplemented, "unknown service runtime.v1.RuntimeService"), ErrUnavailable},
		"starting, containerd 1":  {status.Error(codes.Unknown, "server is not initialized yet"), ErrUnavailable},
		"starting, containerd 2":  {status.Error(codes.Unavailable, "server is not initialized yet"), ErrUnavailable},
		"the runtime's deadline":  {status.Error(codes.DeadlineExceeded, "timeout 10s exceeded"), context.DeadlineExceeded},
		"the runtime's canceling": {status.Error(codes.Canceled, "context canceled"), nil},
		"exists":                  {status.Error(codes.AlreadyExists, "name is reserved"), nil},
		"too large":               {status.Error(codes.ResourceExhausted, "message larger than max"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t).on("StartContainer", fails(tc.err)).start(t)
			err := s.dial(t).StartContainer(t.Context(), "c1")
			for _, kind := range kinds {
				if errors.Is(err, kind) != errors.Is(tc.want, kind) {
					t.Errorf("%v: is it %v? %t", err, kind, errors.Is(err, kind))
				}
			}
			if status.Code(err) != status.Code(tc.err) {
				t.Errorf("code %v, want %v", status.Code(err), status.Code(tc.err))
			}
			if want := "StartContainer c1: " + status.Convert(tc.err).Message(); err.Error() != want {
				t.Errorf("error %q, want %q", err, want)
			}
		})
	}
}

// A call that the runtime does not answer ends, and is no answer. A stop has its grace beside.
func TestCallsHaveDeadlines(t *testing.T) {
	s := newServer(t)
	var mu sync.Mutex
	left := map[string]time.Duration{}
	for _, method := range []string{"ListPodSandbox", "RunPodSandbox", "StopContainer", "ExecSync", "PullImage"} {
		s.on(method, func(ctx context.Context, _ any) (any, error) {
			mu.Lock()
			defer mu.Unlock()
			if deadline, ok := ctx.Deadline(); ok {
				left[method] = time.Until(deadline)
			}
			return nil, status.Error(codes.Aborted, "enough")
		})
	}
	c := s.start(t).dial(t)
	pod := testPod()
	_ = c.ListPods(t.Context(), &podmill.Snapshot{})
	_, _ = c.RunSandbox(t.Context(), sandboxSpec(pod))
	_ = c.StopContainer(t.Context(), "c", time.Hour)
	_, _ = c.Exec(t.Context(), "c", []string{"true"})
	_, _ = c.PullImage(t.Context(), &podmill.ImagePull{Image: "x"})
	for method, want := range map[string]time.Duration{
		"ListPodSandbox": 2 * time.Minute, "RunPodSandbox": 4 * time.Minute, "StopContainer": time.Hour + 2*time.Minute, "ExecSync": 0, "PullImage": 0,
	} {
		if got := left[method]; got > want || got < want-30*time.Second {
			t.Errorf("%s has %v left when it begins, want %v", method, got, want)
		}
	}
}

func TestNoAnswer(t *testing.T) {
	s := newServer(t)
	s.on("StopContainer", s.hangs)
	err := s.start(t).dial(t, WithTimeout(50*time.Millisecond)).StopContainer(t.Context(), "c", 0)
	is(t, err, context.DeadlineExceeded, podmill.ErrNotFound, ErrUnavailable)
	if want := "StopContainer c: no answer within 50ms"; err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
}

// An answer that comes too late disturbs nothing, and the next call is answered.
func TestLateAnswer(t *testing.T) {
	s, gaveUp, late := newServer(t), make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	s.on("StopContainer", func(context.Context, any) (any, error) {
		defer close(late)
		cancel()
		<-gaveUp
		return &runtimeapi.StopContainerResponse{}, nil
	}).on("ReopenContainerLog", says(&runtimeapi.ReopenContainerLogResponse{}))
	c := s.start(t).dial(t, WithTimeout(time.Minute))
	is(t, c.StopContainer(ctx, "c", time.Second), context.Canceled, podmill.ErrNotFound)
	close(gaveUp)
	<-late
	if err := c.ReopenLog(t.Context(), "c"); err != nil {
		t.Error(err)
	}
}

// A message that is too large is an error of its call, and of no other; one below the limit is read.
func TestHugeMessages(t *testing.T) {
	s := newServer(t).on("ListImages", func(context.Context, any) (any, error) {
		return &runtimeapi.ListImagesResponse{Images: []*runtimeapi.Image{{Id: "sha256:1", RepoTags: []string{strings.Repeat("x", maxMessage)}}}}, nil
	})
	c := s.start(t).dial(t)
	_, err := c.ListImages(t.Context())
	if status.Code(err) != codes.ResourceExhausted || errors.Is(err, podmill.ErrNotFound) || errors.Is(err, ErrUnavailable) {
		t.Errorf("error %v", err)
	}
	s.on("ListImages", says(&runtimeapi.ListImagesResponse{Images: []*runtimeapi.Image{{Id: "sha256:1", RepoTags: []string{strings.Repeat("x", maxMessage-100)}}}}))
	images, err := c.ListImages(t.Context())
	if err != nil || len(images) != 1 || images[0].ID != "sha256:1" {
		t.Errorf("%d images, %v", len(images), err)
	}
	s.on("ExecSync", says(&runtimeapi.ExecSyncResponse{Stdout: make([]byte, maxMessage-100)}))
	result, err := c.Exec(t.Context(), "c", []string{"yes"})
	if err != nil || len(result.Stdout) != maxMessage-100 {
		t.Errorf("exec: %v", err)
	}
}

// A runtime that says that it made something, and not what, is not taken at its word.
func TestNoID(t *testing.T) {
	s := newServer(t).on("RunPodSandbox", says(&runtimeapi.RunPodSandboxResponse{})).
		on("CreateContainer", says(&runtimeapi.CreateContainerResponse{})).on("PullImage", says(&runtimeapi.PullImageResponse{}))
	c, spec := s.start(t).dial(t), containerSpec(sandboxSpec(testPod()), 0)
	_, run := c.RunSandbox(t.Context(), spec.Sandbox)
	_, create := c.CreateContainer(t.Context(), spec)
	_, pull := c.PullImage(t.Context(), &podmill.ImagePull{Image: "x:1", Sandbox: spec.Sandbox})
	for want, err := range map[string]error{
		"RunPodSandbox shop/cart(7b4c): ": run, "CreateContainer web of shop/cart(7b4c): ": create, "PullImage x:1: ": pull,
	} {
		if err == nil || err.Error() != want+"the runtime returned no ID" {
			t.Errorf("error %v, want that of %s", err, want)
		}
	}
}

func TestCallEndsWithItsContext(t *testing.T) {
	s := newServer(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the pod is being stopped")
	s.on("StartContainer", func(served context.Context, _ any) (any, error) {
		cancel(why)
		<-served.Done()
		return nil, status.Error(codes.Unknown, "some step failed")
	})
	err := s.start(t).dial(t).StartContainer(ctx, "c")
	is(t, err, context.Canceled, podmill.ErrNotFound)
	is(t, err, why)
}

// CRI counts in seconds. A part of one is given whole: nothing is killed early. What would overflow is as good as for ever.
func TestGraceInSeconds(t *testing.T) {
	s := newServer(t)
	var got int64
	s.on("StopContainer", func(_ context.Context, request any) (any, error) {
		got = request.(*runtimeapi.StopContainerRequest).GetTimeout()
		return &runtimeapi.StopContainerResponse{}, nil
	})
	c := s.start(t).dial(t)
	for grace, want := range map[time.Duration]int64{
		math.MinInt64: 0, -time.Second: 0, 0: 0, 1: 1, time.Second: 1, 1500 * time.Millisecond: 2, time.Hour: 3600, math.MaxInt64: int64(maxGrace / time.Second),
	} {
		if err := c.StopContainer(t.Context(), "c", grace); err != nil || got != want {
			t.Errorf("grace %v is %d s, want %d (%v)", grace, got, want, err)
		}
	}
}

func TestExecTellsTheRuntimeItsTime(t *testing.T) {
	s := newServer(t)
	var got *runtimeapi.ExecSyncRequest
	s.on("ExecSync", func(_ context.Context, request any) (any, error) {
		got = request.(*runtimeapi.ExecSyncRequest)
		return &runtimeapi.ExecSyncResponse{Stdout: []byte("out"), Stderr: []byte("err"), ExitCode: 3}, nil
	})
	c := s.start(t).dial(t)
	result, err := c.Exec(t.Context(), "c", []string{"a", "b c"})
	if err != nil || string(result.Stdout) != "out" || string(result.Stderr) != "err" || result.ExitCode != 3 {
		t.Errorf("%+v, %v", result, err)
	}
	if got.GetTimeout() != 0 || len(got.GetCmd()) != 2 {
		t.Errorf("asked for %v", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := c.Exec(ctx, "c", []string{"a"}); err != nil || got.GetTimeout() < 30 || got.GetTimeout() > 60 {
		t.Errorf("a minute is %d s (%v)", got.GetTimeout(), err)
	}
}

// A command's time is over for the caller at once. The runtime keeps the call to end the command by, unless the caller has gone.
func TestExecLeavesTheRuntimeToEndTheCommand(t *testing.T) {
	s := newServer(t)
	began, cut := make(chan context.Context, 1), make(chan struct{}, 1)
	s.on("ExecSync", func(ctx context.Context, _ any) (any, error) {
		began <- ctx
		select {
		case <-ctx.Done():
			cut <- struct{}{}
		case <-s.done:
		}
		return nil, status.Error(codes.DeadlineExceeded, "timeout 1s exceeded")
	})
	c := s.start(t).dial(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := c.Exec(ctx, "c", []string{"a"})
	is(t, err, context.DeadlineExceeded, podmill.ErrNotFound, ErrUnavailable)
	at := <-began
	if deadline, ok := at.Deadline(); !ok || time.Until(deadline) < overdue/2 || at.Err() != nil {
		t.Errorf("the runtime has until %v to end the command (%v)", deadline, at.Err())
	}
	ctx, cancel = context.WithTimeout(t.Context(), time.Hour)
	go func() { <-began; cancel() }()
	_, err = c.Exec(ctx, "c", []string{"a"})
	is(t, err, context.Canceled, podmill.ErrNotFound, context.DeadlineExceeded)
	<-cut
}

// B038: what is to be gone and is not there is gone. Nothing else is taken for that.
func TestGoneIsDone(t *testing.T) {
	s := newServer(t)
	for _, method := range []string{"StopPodSandbox", "RemovePodSandbox", "StopContainer", "RemoveContainer"} {
		s.on(method, fails(status.Error(codes.NotFound, "not found")))
	}
	c := s.start(t).dial(t)
	gone := func() []error {
		return []error{
			c.StopSandbox(t.Context(), "s"), c.RemoveSandbox(t.Context(), "s"), c.StopContainer(t.Context(), "c", 0), c.RemoveContainer(t.Context(), "c"),
		}
	}
	if err := errors.Join(gone()...); err != nil {
		t.Error(err)
	}
	for _, method := range []string{"StopPodSandbox", "RemovePodSandbox", "StopContainer", "RemoveContainer"} {
		s.on(method, fails(status.Error(codes.DeadlineExceeded, "context deadline exceeded")))
	}
	for _, err := range gone() {
		is(t, err, context.DeadlineExceeded, podmill.ErrNotFound)
	}
}

// Secrets come back in errors: a runtime may print what it was asked, a registry's links are signed (CVE-2024-3744 and its like).
func TestPullKeepsItsSecrets(t *testing.T) {
	const canary = "c4n4ry-s3cret"
	s := newServer(t).on("PullImage", func(_ context.Context, request any) (any, error) {
		a := request.(*runtimeapi.PullImageRequest).GetAuth()
		if a.GetPassword() != canary || a.GetUsername() != "user" || a.GetServerAddress() != "registry.example" {
			t.Errorf("asked with %v", a)
		}
		return nil, status.Errorf(codes.Unknown, `failed to do request %v: Get "https://user:%s@cdn.example/blob?X-Signature=%s": denied, see https://help.example?topic=%s now`,
			request, canary, canary, canary)
	})
	var said strings.Builder
	ctx := logr.NewContext(t.Context(), funcr.New(func(prefix, args string) { said.WriteString(prefix + args) }, funcr.Options{Verbosity: 10}))
	c := s.start(t).dial(t, WithObserver(Observer{Called: func(_ string, _ time.Duration, err error) {
		if err != nil {
			said.WriteString(err.Error())
		}
	}}))
	_, err := c.PullImage(ctx, &podmill.ImagePull{Image: "registry.example/x:1", Auth: &podmill.ImageAuth{
		Username: "user", Password: canary, Auth: canary, IdentityToken: canary, RegistryToken: canary, ServerAddress: "registry.example",
	}})
	if err == nil {
		t.Fatal("it succeeded")
	}
	said.WriteString(err.Error())
	if strings.Contains(said.String(), canary) {
		t.Errorf("the secret is told: %s", said.String())
	}
	if !strings.Contains(err.Error(), `Get "https://***@cdn.example/blob?***": denied, see https://help.example?*** now`) {
		t.Errorf("more is taken away than has to be: %v", err)
	}
}

// Some runtimes remove by a name that name only.
func TestImageIsRemovedByItsID(t *testing.T) {
	s := newServer(t)
	var removed []string
	s.on("ImageStatus", func(_ context.Context, request any) (any, error) {
		if request.(*runtimeapi.ImageStatusRequest).GetImage().GetImage() != "x:1" {
			return &runtimeapi.ImageStatusResponse{}, nil
		}
		return &runtimeapi.ImageStatusResponse{Image: &runtimeapi.Image{Id: "sha256:1"}}, nil
	})
	s.on("RemoveImage", func(_ context.Context, request any) (any, error) {
		removed = append(removed, request.(*runtimeapi.RemoveImageRequest).GetImage().GetImage())
		return &runtimeapi.RemoveImageResponse{}, nil
	})
	c := s.start(t).dial(t)
	for _, image := range []string{"x:1", "absent:1"} {
		if err := c.RemoveImage(t.Context(), image); err != nil {
			t.Error(err)
		}
	}
	if len(removed) != 1 || removed[0] != "sha256:1" {
		t.Errorf("removed %q", removed)
	}
}

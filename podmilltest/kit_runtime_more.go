package podmilltest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

func testExec(k *runtimeKit) {
	spec, sandbox, container := k.launch(k.Commands.Sleep(time.Hour))
	check := func(line []string, code int32, stdout, stderr string) {
		k.Helper()
		result, err := k.Runtime.Exec(k.ctx, container, line)
		k.ok("Exec", err)
		if result.ExitCode != code || string(result.Stdout) != stdout || string(result.Stderr) != stderr {
			k.Errorf("Exec %q: code %d, output %q and %q, want %d, %q and %q",
				line, result.ExitCode, result.Stdout, result.Stderr, code, stdout, stderr)
		}
	}
	check(k.Commands.Print("hello  world"), 0, "hello  world\n", "")
	if k.Commands.Complain != nil {
		check(k.Commands.Complain("oh no"), 0, "", "oh no\n")
	}
	check(k.Commands.Exit(3), 3, "", "")

	c := k.container(spec, sandbox, k.Commands.Exit(0))
	c.Attempt = 1
	exited := k.start(c)
	k.exited(spec.Pod, exited)
	_, err := k.Runtime.Exec(k.ctx, exited, k.Commands.Exit(0))
	k.fails("Exec in a container that has exited", err)
}

func testExecEndsWithItsContext(k *runtimeKit) {
	_, _, container := k.launch(k.Commands.Sleep(time.Hour))
	ctx, cancel := context.WithTimeout(k.ctx, time.Second)
	defer cancel()
	k.promptly("Exec", func() {
		_, err := k.Runtime.Exec(ctx, container, k.Commands.Sleep(time.Hour))
		k.fails("an Exec whose context ends", err)
	})
}

func testLocalImage(k *runtimeKit) {
	image, err := k.Runtime.InspectImage(k.ctx, k.Image)
	k.ok("InspectImage", err)
	if image.ID == "" {
		k.Error("the image has no ID")
	}
	byID, err := k.Runtime.InspectImage(k.ctx, image.ID)
	k.ok("InspectImage by ID", err)
	if byID.ID != image.ID {
		k.Errorf("by its ID the image is %s, want %s", byID.ID, image.ID)
	}
	images, err := k.Runtime.ListImages(k.ctx)
	k.ok("ListImages", err)
	if !slices.ContainsFunc(images, func(i podmill.Image) bool { return i.ID == image.ID }) {
		k.Errorf("image %s is not among the %d that ListImages returned", image.ID, len(images))
	}
	k.ok("RemoveImage of one that is not there", k.Runtime.RemoveImage(k.ctx, k.Absent))
	_, err = k.Runtime.PullImage(k.ctx, &podmill.ImagePull{Image: k.Absent})
	k.fails("PullImage of one that is nowhere", err)
}

func testPullImage(k *runtimeKit) {
	k.given("Pull", k.Pull != "")
	spec := k.pod()
	sandbox := k.runSandbox(spec)
	pull := &podmill.ImagePull{Image: k.Pull, Auth: k.PullAuth, Sandbox: spec}
	if k.PullAuth != nil {
		_, err := k.Runtime.PullImage(k.ctx, &podmill.ImagePull{Image: k.Pull, Sandbox: spec})
		k.fails("PullImage without credentials", err)
	}
	image, err := k.Runtime.PullImage(k.ctx, pull)
	k.ok("PullImage", err)
	again, err := k.Runtime.PullImage(k.ctx, pull)
	k.ok("PullImage of one that is here", err)
	if image != again {
		k.Errorf("pulled twice, the image is %q and then %q", image, again)
	}
	c := k.container(spec, sandbox, k.Commands.Exit(4))
	c.Image = image
	container := k.start(c)
	if seen := k.exited(spec.Pod, container); seen.ExitCode != 4 {
		k.Errorf("exit code %d, want 4", seen.ExitCode)
	}
	k.ok("RemoveContainer", k.Runtime.RemoveContainer(k.ctx, container))
	for range 2 {
		k.ok("RemoveImage", k.Runtime.RemoveImage(k.ctx, image))
	}
	for _, name := range []string{image, k.Pull} {
		if _, err := k.Runtime.InspectImage(k.ctx, name); !errors.Is(err, podmill.ErrNotFound) {
			k.Errorf("InspectImage %s when it is removed: error %v, want ErrNotFound", name, err)
		}
	}
}

// logged returns what a file holds of a container's output, without times and streams.
func logged(path string) string {
	data, _ := os.ReadFile(path) // not yet there is nothing yet
	var lines []string
	for line := range strings.Lines(string(data)) {
		if fields := strings.SplitN(line, " ", 4); len(fields) == 4 {
			lines = append(lines, fields[1]+" "+fields[2]+" "+fields[3])
		}
	}
	return strings.Join(lines, "")
}

func testLogs(k *runtimeKit) {
	k.given("Dir", k.Dir != "")
	spec := k.pod()
	c := k.container(spec, k.runSandbox(spec), k.Commands.Print("hello"))
	c.LogPath = filepath.Join("c", "0.log")
	path := filepath.Join(spec.LogDirectory, c.LogPath)
	k.ok("make the log's directory", os.MkdirAll(filepath.Dir(path), 0o755))
	id := k.start(c)
	if seen := k.see(spec.Pod, id); seen.LogPath != path {
		k.Errorf("the log is at %q, want %q", seen.LogPath, path)
	}
	k.exited(spec.Pod, id)
	k.eventually("the log holds what was printed", func() bool { return logged(path) == "stdout F hello\n" })
}

func testReopenLog(k *runtimeKit) {
	reopener, ok := podmill.As[podmill.LogReopener](k.Runtime)
	if !ok {
		k.Skip("the runtime is no LogReopener")
	}
	k.given("Dir", k.Dir != "")
	spec, _, container := k.launch(k.Commands.Sleep(time.Hour))
	path := k.see(spec.Pod, container).LogPath
	k.eventually("there is a log", func() bool { _, err := os.Stat(path); return err == nil })
	k.ok("rotate the log", os.Rename(path, path+".1"))
	if err := reopener.ReopenLog(k.ctx, container); errors.Is(err, errors.ErrUnsupported) {
		k.Skip("ReopenLog is not supported")
	} else {
		k.ok("ReopenLog", err)
	}
	k.eventually("there is a new log", func() bool { _, err := os.Stat(path); return err == nil })
	if err := reopener.ReopenLog(k.ctx, noID); !errors.Is(err, podmill.ErrNotFound) {
		k.Errorf("ReopenLog of a container that is not there: error %v, want ErrNotFound", err)
	}
}

func testEvents(k *runtimeKit) {
	streamer, ok := podmill.As[podmill.EventStreamer](k.Runtime)
	if !ok {
		k.Skip("the runtime is no EventStreamer")
	}
	s := k.stream(streamer)
	s.await("the stream is connected", func() bool { return s.connected.Load() })
	spec := k.pod()
	sandbox := k.runSandbox(spec)
	s.await("RunSandbox makes an event", func() bool { return s.count(spec.Pod.UID) > 0 })
	before := s.count(spec.Pod.UID)
	container := k.start(k.container(spec, sandbox, k.Commands.Sleep(500*time.Millisecond)))
	s.await("starting a container makes an event", func() bool { return s.count(spec.Pod.UID) > before })
	k.exited(spec.Pod, container)
	before = s.count(spec.Pod.UID)
	k.ok("RemoveSandbox", k.Runtime.RemoveSandbox(k.ctx, sandbox))
	s.await("RemoveSandbox makes an event", func() bool { return s.count(spec.Pod.UID) > before })
	s.cancel()
	k.promptly("the end of StreamEvents", func() {
		if err := <-s.ended; err == nil {
			k.Error("StreamEvents returned nil, want why it ended")
		}
	})
}

// stream is an event stream that is counted.
type stream struct {
	*runtimeKit
	cancel    context.CancelFunc
	connected atomic.Bool
	ended     chan error

	mu     sync.Mutex
	events map[types.UID]int
}

func (k *runtimeKit) stream(streamer podmill.EventStreamer) *stream {
	s := &stream{runtimeKit: k, ended: make(chan error, 1), events: map[types.UID]int{}}
	ctx, cancel := context.WithCancel(k.ctx)
	s.cancel = cancel
	k.Cleanup(cancel)
	go func() {
		s.ended <- streamer.StreamEvents(ctx, func() { s.connected.Store(true) }, func(uid types.UID) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.events[uid]++
		})
	}()
	return s
}

func (s *stream) count(uid types.UID) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.events[uid]
}

// await waits until is answers true, and ends the test if the stream ends first.
func (s *stream) await(what string, is func() bool) {
	s.Helper()
	s.eventually(what, func() bool {
		select {
		case err := <-s.ended:
			if errors.Is(err, errors.ErrUnsupported) {
				s.Skip("StreamEvents is not supported")
			}
			s.Fatalf("StreamEvents ended: %v", err)
		default:
		}
		return is()
	})
}

func testStatus(k *runtimeKit) {
	reporter, ok := podmill.As[podmill.StatusReporter](k.Runtime)
	if !ok {
		k.Skip("the runtime is no StatusReporter")
	}
	status, err := reporter.RuntimeStatus(k.ctx)
	if errors.Is(err, errors.ErrUnsupported) {
		k.Skip("RuntimeStatus is not supported")
	}
	k.ok("RuntimeStatus", err)
	if status.Name == "" || status.Version == "" {
		k.Errorf("the runtime is called %q, version %q", status.Name, status.Version)
	}
	if !status.RuntimeReady.OK || k.Network && !status.NetworkReady.OK {
		k.Errorf("the runtime runs pods and says that it is not ready: %+v, %+v", status.RuntimeReady, status.NetworkReady)
	}
}

package podmilltest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/google/go-cmp/cmp"

	"github.com/podmill/podmill"
)

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
		s.ended <- streamer.StreamEvents(ctx, func() { s.connected.Store(true) }, func(e podmill.RuntimeEvent) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.events[e.Pod]++
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

func testInspectSandbox(k *runtimeKit) {
	inspector, ok := podmill.As[podmill.SandboxInspector](k.Runtime)
	if !ok {
		k.Skip("the runtime is no SandboxInspector")
	}
	spec := k.pod()
	id := k.runSandbox(spec)
	alone, err := inspector.InspectSandbox(k.ctx, id)
	if errors.Is(err, errors.ErrUnsupported) {
		k.Skip("InspectSandbox is not supported")
	}
	k.ok("InspectSandbox", err)
	if diff := cmp.Diff(&k.inspect(spec.Pod).Sandboxes[0], alone); diff != "" {
		k.Errorf("a sandbox alone is another than in its pod (-pod +alone):\n%s", diff)
	}
	k.ok("RemoveSandbox", k.Runtime.RemoveSandbox(k.ctx, id))
	if _, err := inspector.InspectSandbox(k.ctx, id); !errors.Is(err, podmill.ErrNotFound) {
		k.Errorf("InspectSandbox of one that was removed: %v, want ErrNotFound", err)
	}
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

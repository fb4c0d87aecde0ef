package cri_test

import (
	"errors"
	"testing"
	"time"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/cri"
	"github.com/podmill/podmill/internal/testenv"
)

// A client outlives a restart of containerd, and so does what runs: while it is away nothing is taken for absent.
func TestContainerdRestarts(t *testing.T) {
	t.Parallel()
	daemon := testenv.OwnContainerd(t)
	client := dial(t, daemon.Endpoint)
	r := start(t, client, "exec sleep 1000", nil)
	connected, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- client.StreamEvents(t.Context(), func() { close(connected) }, func(podmill.RuntimeEvent) {})
	}()
	<-connected

	daemon.Halt(t)
	if err := <-ended; !errors.Is(err, cri.ErrUnavailable) || errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("the events ended with %v", err)
	}
	for name, err := range map[string]error{
		"ListPods":      client.ListPods(t.Context(), &podmill.Snapshot{}),
		"InspectPod":    second(client.InspectPod(t.Context(), r.sandbox.Pod.UID)),
		"StopContainer": client.StopContainer(t.Context(), r.id, 0),
		"RuntimeStatus": second(client.RuntimeStatus(t.Context())),
	} {
		if !errors.Is(err, cri.ErrUnavailable) || errors.Is(err, podmill.ErrNotFound) {
			t.Errorf("%s of a runtime that is away: %v", name, err)
		}
	}

	daemon.Start(t)
	back := time.Now()
	for {
		seen, err := client.InspectPod(t.Context(), r.sandbox.Pod.UID)
		if err == nil {
			if c := seen.Container("c"); c == nil || c.ID != r.id || c.State != podmill.StateRunning || !seen.Sandboxes[0].Ready {
				t.Errorf("it came back as %+v", seen)
			}
			break
		}
		if !errors.Is(err, cri.ErrUnavailable) || time.Since(back) > 30*time.Second {
			t.Fatal(err)
		}
		<-time.After(10 * time.Millisecond)
	}
	t.Logf("%v after its start the runtime is reached again", time.Since(back).Round(time.Millisecond))
}

func second[T any](_ T, err error) error { return err }

package cri_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/podmill/podmill"

	"github.com/podmill/podmill/internal/testenv"
)

// Looking at a pod while it comes and goes always finds an answer: what vanishes between two looks is left out (B038).
func TestInspectWhileThePodGoes(t *testing.T) {
	t.Parallel()
	eachContainerd(t, func(t *testing.T, endpoint string) {
		client := dial(t, endpoint)
		r := start(t, client, "exec sleep 1000", nil)
		for attempt := range uint32(3) {
			again := *r.spec
			again.Attempt = attempt + 1
			if _, err := client.CreateContainer(t.Context(), &again); err != nil {
				t.Fatal(err)
			}
		}
		var gone atomic.Bool
		looked := make(chan int, 1)
		go func() {
			n := 0
			for ; !gone.Load(); n++ {
				if _, err := client.InspectPod(t.Context(), r.sandbox.Pod.UID); err != nil {
					t.Errorf("inspection %d: %v", n, err)
					break
				}
			}
			looked <- n
		}()
		if err := client.StopSandbox(t.Context(), r.sandboxID); err != nil {
			t.Error(err)
		}
		if err := client.RemoveSandbox(t.Context(), r.sandboxID); err != nil {
			t.Error(err)
		}
		gone.Store(true)
		t.Logf("%d inspections", <-looked)
	})
}

// The last event of a pod tells whose it is, too: the agent need not wait for a listing to know that it has gone.
func TestTheLastEventIsOfThePod(t *testing.T) {
	t.Parallel()
	client := dial(t, testenv.Containerd(t))
	r := prepare(t, client, "", nil)
	events, connected := make(chan struct{}, 1000), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- client.StreamEvents(ctx, func() { close(connected) }, func(e podmill.RuntimeEvent) {
			if e.Pod == r.sandbox.Pod.UID {
				events <- struct{}{}
			}
		})
	}()
	<-connected
	id, err := client.RunSandbox(t.Context(), r.sandbox)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.StopSandbox(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if err := client.RemoveSandbox(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	for n := range 4 { // created, started, stopped, deleted
		select {
		case <-events:
		case <-time.After(time.Minute):
			t.Fatalf("%d events", n)
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

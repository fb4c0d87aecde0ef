package cri_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/cri"
	"github.com/podmill/podmill/internal/testenv"
)

// A client outlives a restart of containerd, and so does what runs: while it is away nothing is taken for absent.
func TestContainerdRestarts(t *testing.T) {
	daemon := testenv.OwnContainerd(t)
	client := dial(t, daemon.Endpoint)
	r := start(t, client, "exec sleep 1000", nil)
	connected, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- client.StreamEvents(t.Context(), func() { close(connected) }, func(types.UID) {}) }()
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

// Looking at a pod while it comes and goes always finds an answer: what vanishes between two looks is left out (B038).
func TestInspectWhileThePodGoes(t *testing.T) {
	testenv.EachContainerd(t, func(t *testing.T, endpoint string) {
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

// An image that is not there is an answer; one that is denied is none; neither tells the credential.
func TestPullsThatFail(t *testing.T) {
	testenv.EachContainerd(t, func(t *testing.T, endpoint string) {
		client := dial(t, endpoint)
		plain, private := testenv.PlainRegistry(t), testenv.AuthRegistry(t)
		name := fmt.Sprintf("cri-pulls-%d-%d", os.Getpid(), time.Now().UnixNano())
		secret := private.Push(t, name+":1", 1000)
		const wrong = "wr0ng-p4ssword"
		for what, tc := range map[string]struct {
			pull podmill.ImagePull
			is   bool // ErrNotFound
			want string
		}{
			"no such image":  {podmill.ImagePull{Image: plain.Addr + "/" + name + "-absent:1"}, true, "not found"},
			"no such tag":    {podmill.ImagePull{Image: plain.Addr + "/busybox:none"}, true, "not found"},
			"no credential":  {podmill.ImagePull{Image: secret}, false, ""},
			"wrong password": {podmill.ImagePull{Image: secret, Auth: &podmill.ImageAuth{Username: private.User, Password: wrong}}, false, ""},
			"unreachable":    {podmill.ImagePull{Image: "127.0.0.1:1/x:1", Auth: &podmill.ImageAuth{Username: "u", Password: wrong}}, false, "refused"},
			"no name":        {podmill.ImagePull{Image: "Not A Name"}, false, "reference"},
		} {
			_, err := client.PullImage(t.Context(), &tc.pull)
			if err == nil || errors.Is(err, podmill.ErrNotFound) != tc.is || errors.Is(err, cri.ErrUnavailable) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v", what, err)
			} else if strings.Contains(err.Error(), wrong) {
				t.Errorf("%s: the password is told: %v", what, err)
			}
		}
		pulled, err := client.PullImage(t.Context(), &podmill.ImagePull{Image: secret, Auth: &podmill.ImageAuth{Username: private.User, Password: private.Password}})
		if err != nil {
			t.Fatal(err)
		}
		if err := client.RemoveImage(t.Context(), pulled); err != nil {
			t.Error(err)
		}
	})
}

// The last event of a pod tells whose it is, too: the agent need not wait for a listing to know that it has gone.
func TestTheLastEventIsOfThePod(t *testing.T) {
	client := dial(t, testenv.Containerd(t))
	r := prepare(t, client, "", nil)
	events, connected := make(chan struct{}, 1000), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- client.StreamEvents(ctx, func() { close(connected) }, func(uid types.UID) {
			if uid == r.sandbox.Pod.UID {
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
		case <-time.After(10 * time.Second):
			t.Fatalf("%d events", n)
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

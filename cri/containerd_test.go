package cri_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/cri"
	"github.com/podmill/podmill/internal/testenv"
	"github.com/podmill/podmill/podmilltest"
)

// image is one that every containerd of the tests has.
const image = "podmill.test/busybox:1"

// dial connects to a real containerd.
func dial(t *testing.T, endpoint string, opts ...cri.Option) *cri.Client {
	t.Helper()
	c, err := cri.Dial(t.Context(), endpoint, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// eachContainerd runs f on the new and on the old containerd, side by side.
func eachContainerd(t *testing.T, f func(t *testing.T, endpoint string)) {
	t.Helper()
	testenv.EachContainerd(t, func(t *testing.T, endpoint string) {
		t.Parallel()
		f(t, endpoint)
	})
}

// TestRuntime proves that real containerd behind a client is the runtime that the contract promises.
func TestRuntime(t *testing.T) {
	t.Parallel()
	eachContainerd(t, func(t *testing.T, endpoint string) {
		registry := testenv.AuthRegistry(t)
		pull := registry.Push(t, fmt.Sprintf("conformance-%d-%d:1", os.Getpid(), time.Now().UnixNano()), 1000)
		podmilltest.RuntimeTest(t, func(t *testing.T) podmilltest.RuntimeEnv {
			t.Parallel()
			root := testenv.CgroupRoot(t)
			return podmilltest.RuntimeEnv{
				Runtime:  dial(t, endpoint),
				Image:    image,
				Absent:   registry.Addr + "/absent:1",
				Pull:     pull,
				PullAuth: &podmill.ImageAuth{Username: registry.User, Password: registry.Password},
				Dir:      t.TempDir(),
				Network:  true,
				Complete: func(spec *podmill.SandboxSpec) { spec.CgroupParent = root },
				Patience: time.Minute, // the machine may be busy
			}
		})
	})
}

// running is a pod with a container, on a real containerd.
type running struct {
	*testing.T
	client    *cri.Client
	sandbox   *podmill.SandboxSpec
	sandboxID string
	spec      *podmill.ContainerSpec
	id        string
}

// start runs a pod whose one container runs a script. change may change what it is made of, and be nil.
func start(t *testing.T, client *cri.Client, script string, change func(*podmill.ContainerSpec)) *running {
	t.Helper()
	r := prepare(t, client, script, change)
	var err error
	if r.sandboxID, err = client.RunSandbox(t.Context(), r.sandbox); err != nil {
		t.Fatal(err)
	}
	r.spec.SandboxID = r.sandboxID
	if r.id, err = client.CreateContainer(t.Context(), r.spec); err != nil {
		t.Fatal(err)
	}
	if err := client.StartContainer(t.Context(), r.id); err != nil {
		t.Fatal(err)
	}
	return r
}

// prepare makes the specs of a pod, and sees to its end.
func prepare(t *testing.T, client *cri.Client, script string, change func(*podmill.ContainerSpec)) *running {
	t.Helper()
	uid := fmt.Sprintf("cri-%d-%d", os.Getpid(), time.Now().UnixNano())
	pod := podmilltest.Pod("cri-test/"+uid, podmilltest.UID(types.UID(uid)), podmilltest.Container("c", image))
	labels := map[string]string{podmill.LabelPodUID: uid, podmill.LabelPodName: pod.Name, podmill.LabelPodNamespace: pod.Namespace}
	r := &running{T: t, client: client, sandbox: &podmill.SandboxSpec{
		Pod: pod, Hostname: "cri-test", CgroupParent: testenv.CgroupRoot(t) + "/kubepods/pod" + uid, LogDirectory: t.TempDir(), Labels: labels,
	}}
	r.spec = &podmill.ContainerSpec{
		Sandbox: r.sandbox, Container: &pod.Spec.Containers[0], Image: image, Command: []string{"sh", "-c", script}, LogPath: "c.log", Labels: labels,
	}
	if change != nil {
		change(r.spec)
	}
	t.Cleanup(r.remove)
	return r
}

// remove leaves nothing of the pod behind.
func (r *running) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	seen, err := r.client.InspectPod(ctx, r.sandbox.Pod.UID)
	if err != nil {
		r.Error(err)
		return
	}
	for _, s := range seen.Sandboxes {
		if err := r.client.StopSandbox(ctx, s.ID); err != nil {
			r.Error(err)
		}
		if err := r.client.RemoveSandbox(ctx, s.ID); err != nil {
			r.Error(err)
		}
	}
}

// exited waits until the container has ended.
func (r *running) exited() *podmill.Container {
	r.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		seen, err := r.client.InspectPod(r.Context(), r.sandbox.Pod.UID)
		if err != nil {
			r.Fatal(err)
		}
		c := seen.Container("c")
		switch {
		case c != nil && c.State == podmill.StateExited:
			return c
		case time.Now().After(deadline):
			r.Fatalf("it does not end: %+v", c)
		}
		<-time.After(20 * time.Millisecond) // containerd before 2 has no events to wait for
	}
}

// output runs a script in the container.
func (r *running) output(script string) string {
	r.Helper()
	result, err := r.client.Exec(r.Context(), r.id, []string{"sh", "-c", script})
	if err != nil {
		r.Fatal(err)
	}
	if result.ExitCode != 0 {
		r.Errorf("%s: code %d, %s", script, result.ExitCode, result.Stderr)
	}
	return strings.TrimSpace(string(result.Stdout))
}

// Who the runtime is and what it can do: a newer one tells its cgroup driver and of events, an older one says that it does not.
func TestWhoTheRuntimeIs(t *testing.T) {
	for _, tc := range []struct {
		name     string
		endpoint func(testing.TB) string
		version  string
		driver   string
		events   bool
	}{
		{"containerd2", testenv.Containerd, "2.", "cgroupfs", true},
		{"containerd1", testenv.OldContainerd, "1.", "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			client := dial(t, tc.endpoint(t))
			status, err := client.RuntimeStatus(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if status.Name != "containerd" || !strings.HasPrefix(strings.TrimPrefix(status.Version, "v"), tc.version) || status.CgroupDriver != tc.driver {
				t.Errorf("it is %s %s with the driver %q", status.Name, status.Version, status.CgroupDriver)
			}
			if !status.RuntimeReady.OK || !status.NetworkReady.OK {
				t.Errorf("ready? %+v, network? %+v", status.RuntimeReady, status.NetworkReady)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err = client.StreamEvents(ctx, func() {
				if tc.events {
					cancel() // else the refusal is under way
				}
			}, func(podmill.RuntimeEvent) {})
			if tc.events != errors.Is(err, context.Canceled) || tc.events == errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("the events ended with %v", err)
			}
		})
	}
}

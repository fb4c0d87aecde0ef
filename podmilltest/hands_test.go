package podmilltest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// seen returns what the runtime holds of a pod, and its newest container "c".
func seen(t *testing.T, rt podmill.Runtime, pod types.UID) (*podmill.RuntimePod, podmill.Container) {
	t.Helper()
	p, err := rt.InspectPod(t.Context(), pod)
	if err != nil {
		t.Fatal(err)
	}
	if c := p.Container("c"); c != nil {
		return p, *c
	}
	return p, podmill.Container{}
}

func TestWhatTheWorldDoes(t *testing.T) {
	rt := NewRuntime()
	defer rt.Close()
	a, _ := run(t, rt, "a")
	if !rt.KillProcess(a, "c", 7) {
		t.Error("KillProcess found nothing")
	}
	if _, c := seen(t, rt, a); c.State != podmill.StateExited || c.ExitCode != 7 {
		t.Errorf("after KillProcess: %+v", c)
	}
	b, _ := run(t, rt, "b")
	rt.OOM(b, "c")
	if _, c := seen(t, rt, b); c.ExitCode != 137 || c.Reason != "OOMKilled" {
		t.Errorf("after OOM: %+v", c)
	}
	d, _ := run(t, rt, "d")
	rt.KillSandbox(d)
	if p, c := seen(t, rt, d); p.Sandboxes[0].Ready || len(p.Sandboxes[0].IPs) != 0 || c.State != podmill.StateRunning {
		t.Errorf("after KillSandbox: %+v", p)
	}
	rt.LoseTrack(d, "c")
	if _, c := seen(t, rt, d); c.State != podmill.StateUnknown {
		t.Errorf("after LoseTrack: %+v", c)
	}
	rt.RemoveBehindBack(d, "c")
	if p, _ := seen(t, rt, d); len(p.Sandboxes) != 1 || len(p.Containers) != 0 {
		t.Errorf("after RemoveBehindBack: %+v", p)
	}
	rt.RemovePodBehindBack(d)
	if p, _ := seen(t, rt, d); !p.Empty() {
		t.Errorf("after RemovePodBehindBack: %+v", p)
	}
	if rt.KillProcess("nobody", "c", 1) || rt.OOM(a, "nothing") || rt.KillSandbox("nobody") || rt.RemovePodBehindBack("nobody") {
		t.Error("something was found that is not there")
	}
}

func TestUnknownContainerStopsAndIsRemoved(t *testing.T) {
	rt := NewRuntime()
	a, id := run(t, rt, "a")
	rt.LoseTrack(a, "c")
	if err := rt.StopContainer(t.Context(), id, time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, c := seen(t, rt, a); c.State != podmill.StateExited || c.ExitCode != 255 {
		t.Errorf("when it is stopped it is %v with %d, want exited with 255", c.State, c.ExitCode)
	}
}

func TestReboot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := NewRuntime()
		a, _ := run(t, rt, "a")
		broken := make(chan error)
		go func() { broken <- rt.StreamEvents(t.Context(), func() {}, func(podmill.RuntimeEvent) {}) }()
		synctest.Wait()
		rt.Reboot()
		if err := <-broken; err == nil {
			t.Error("the event stream ended without an error")
		}
		if p, c := seen(t, rt, a); p.Sandboxes[0].Ready || c.State != podmill.StateExited || c.ExitCode != 255 {
			t.Errorf("after Reboot: %+v", p)
		}
	})
}

func TestNothingRunsWithoutNetwork(t *testing.T) {
	rt := NewRuntime()
	rt.SetStatus(podmill.RuntimeStatus{
		RuntimeReady: podmill.Condition{OK: true}, NetworkReady: podmill.Condition{Message: "no CNI configuration"},
	})
	_, err := rt.RunSandbox(t.Context(), &podmill.SandboxSpec{Pod: Pod("a")})
	if err == nil || !strings.Contains(err.Error(), "no CNI configuration") {
		t.Errorf("error %v, want that there is no network", err)
	}
	if _, err := rt.RunSandbox(t.Context(), &podmill.SandboxSpec{Pod: Pod("b", HostNetwork())}); err != nil {
		t.Errorf("in the host's network: %v", err)
	}
}

func TestScriptsByNameAndAttempt(t *testing.T) {
	rt := NewRuntime(WithScript("c", "exit 1", "exit 2"), WithScript("default/b/c", "exit 9"))
	run(t, rt, "b")
	pod := Pod("a", Container("c", "i", Runs("exit 99")))
	launched(t, rt, pod)
	for attempt, want := range []int32{1, 2, 2} {
		p, c := seen(t, rt, pod.UID)
		if c.ExitCode != want {
			t.Errorf("attempt %d exited with %d, want %d", attempt, c.ExitCode, want)
		}
		id, err := rt.CreateContainer(t.Context(), &podmill.ContainerSpec{
			Sandbox: &podmill.SandboxSpec{Pod: pod}, SandboxID: p.Sandboxes[0].ID, Container: &pod.Spec.Containers[0],
			Attempt: uint32(attempt + 1), Image: "i",
		})
		if err == nil {
			err = rt.StartContainer(t.Context(), id)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, c := seen(t, rt, Pod("b").UID); c.ExitCode != 9 {
		t.Errorf("the pod's own script exits with 9, it exited with %d", c.ExitCode)
	}
}

func TestLatencyIsHalfBeforeAndHalfAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := NewRuntime(WithLatency(OpRunSandbox, 2*time.Second))
		for timeout, want := range map[time.Duration]int{500 * time.Millisecond: 0, 1500 * time.Millisecond: 1} {
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			pod := Pod("after-" + timeout.String())
			if _, err := rt.RunSandbox(ctx, &podmill.SandboxSpec{Pod: pod}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v", err)
			}
			if p, _ := seen(t, rt, pod.UID); len(p.Sandboxes) != want {
				t.Errorf("cancelled after %v there are %d sandboxes, want %d", timeout, len(p.Sandboxes), want)
			}
			cancel()
		}
	})
}

// Listing into the same snapshot must not cost more with more pods.
func TestListingAllocatesNothingPerPod(t *testing.T) {
	allocs := func(pods int) float64 {
		rt := NewRuntime()
		for i := range pods {
			run(t, rt, "pod-"+strings.Repeat("x", i+1))
		}
		snap := new(podmill.Snapshot)
		return testing.AllocsPerRun(20, func() {
			if err := rt.ListPods(t.Context(), snap); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := allocs(1), allocs(200); many > few {
		t.Errorf("%v allocations with 200 pods, %v with 1", many, few)
	}
}

func TestNothingHappensAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := NewRuntime()
		pod := Pod("a", Container("c", "i", Runs("sleep 5; exit 1")))
		launched(t, rt, pod)
		rt.Close()
		time.Sleep(time.Minute)
		if _, c := seen(t, rt, pod.UID); c.State != podmill.StateRunning {
			t.Errorf("it is %v a minute after Close", c.State)
		}
	})
}

// KEP-4960: a container is stopped by the signal that it asks for, and says which that is.
func TestStopSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := NewRuntime(WithImages(ScriptImage("img:1", "trap 'exit 7' USR1; sleep 3600 & wait")))
		defer rt.Close()
		usr1 := corev1.Signal("SIGUSR1")
		pod := Pod("a", Container("main", "img:1", func(c *corev1.Container) { c.Lifecycle = &corev1.Lifecycle{StopSignal: &usr1} }))
		sandbox, err := rt.RunSandbox(t.Context(), &podmill.SandboxSpec{Pod: pod})
		if err != nil {
			t.Fatal(err)
		}
		id, err := rt.CreateContainer(t.Context(), &podmill.ContainerSpec{
			Container: &pod.Spec.Containers[0], Sandbox: &podmill.SandboxSpec{Pod: pod}, SandboxID: sandbox, Image: "img:1",
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(rt.StartContainer(t.Context(), id), rt.StopContainer(t.Context(), id, time.Minute)); err != nil {
			t.Fatal(err)
		}
		seen, _ := rt.InspectPod(t.Context(), pod.UID)
		if c := seen.Container("main"); c.ExitCode != 7 || c.StopSignal != "SIGUSR1" {
			t.Errorf("it ended with %d, of the signal %q", c.ExitCode, c.StopSignal)
		}
	})
}

package podmilltest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

var errFault = errors.New("a fault")

// launch runs a sandbox and a container of a pod, without a word about errors.
func run(t *testing.T, rt podmill.Runtime, name string) (pod types.UID, container string) {
	t.Helper()
	p := Pod(name, Container("c", "i", Runs("sleep inf")))
	return p.UID, launched(t, rt, p)
}

func TestFaultHitsWhatItNamesAndNothingElse(t *testing.T) {
	rt := Faulty(NewRuntime())
	a, ca := run(t, rt, "a")
	_, cb := run(t, rt, "b")
	rt.Add(
		Fault{On: OpRemoveContainer, Pod: a, Container: "c", After: 1, Times: 2, Effect: Fail(errFault)},
		Fault{On: OpRemoveContainer, Container: "other", Effect: Fail(errFault)},
	)
	for i, want := range []error{nil, errFault, errFault, nil} {
		if err := rt.RemoveContainer(t.Context(), ca); !errors.Is(err, want) {
			t.Errorf("call %d: %v, want %v", i, err, want)
		}
	}
	if err := rt.RemoveContainer(t.Context(), cb); err != nil {
		t.Errorf("another pod's container: %v", err)
	}
	if err := rt.StopContainer(t.Context(), ca, 0); err != nil {
		t.Errorf("another operation: %v", err)
	}
}

func TestLostReplyDoesTheWork(t *testing.T) {
	rt := Faulty(NewRuntime(), Fault{On: OpRunSandbox, Times: 1, Effect: LoseReply(errFault)})
	pod := Pod("a", Container("c", "i"))
	if id, err := rt.RunSandbox(t.Context(), &podmill.SandboxSpec{Pod: pod}); !errors.Is(err, errFault) || id != "" {
		t.Errorf("RunSandbox returned %q, %v", id, err)
	}
	seen, err := rt.InspectPod(t.Context(), pod.UID)
	if err != nil || len(seen.Sandboxes) != 1 {
		t.Errorf("what the call left: %+v, %v", seen, err)
	}
}

func TestHangUntilReleasedOrCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		rt := Faulty(NewRuntime(), Fault{On: OpListPods, Effect: Hang(release)})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := rt.ListPods(ctx, &podmill.Snapshot{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want that the deadline is exceeded", err)
		}
		done := make(chan error)
		go func() { done <- rt.ListPods(t.Context(), &podmill.Snapshot{}) }()
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("returned %v before it was released", err)
		default:
		}
		close(release)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestSlowAndLateTakeTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := NewRuntime()
		rt := Faulty(inner)
		a, id := run(t, rt, "a")
		rt.Add(Fault{On: OpInspectPod, Times: 1, Effect: Late(10 * time.Second)}, Fault{On: OpInspectPod, Effect: Slow(10 * time.Second)})
		time.AfterFunc(5*time.Second, func() { inner.KillProcess(a, "c", 9) })
		for i, want := range []podmill.State{podmill.StateRunning, podmill.StateExited} {
			seen, err := rt.InspectPod(t.Context(), a)
			if err != nil || seen.Containers[0].State != want || seen.Containers[0].ID != id {
				t.Errorf("answer %d: %+v, %v, want %v", i, seen, err, want)
			}
			if took, want := inner.Log().now(), time.Duration(i+1)*10*time.Second; took != want {
				t.Errorf("answer %d came at %v, want %v", i, took, want)
			}
		}
	})
}

func TestStaleListing(t *testing.T) {
	rt := Faulty(NewRuntime())
	a, _ := run(t, rt, "a")
	var snap podmill.Snapshot
	list := func() (uids []types.UID) {
		if err := rt.ListPods(t.Context(), &snap); err != nil {
			t.Fatal(err)
		}
		for _, i := range snap.Items {
			uids = append(uids, i.Pod.UID)
		}
		return uids
	}
	before := list()
	rt.Add(Fault{On: OpListPods, Effect: Stale()}, Fault{On: OpInspectPod, Effect: Stale()})
	b, _ := run(t, rt, "b")
	for range 2 {
		if got := list(); !slices.Equal(got, before) {
			t.Errorf("listed %v, want %v", got, before)
		}
	}
	if seen, err := rt.InspectPod(t.Context(), b); err != nil || !seen.Empty() {
		t.Errorf("inspected %+v, %v, want nothing", seen, err)
	}
	rt.Clear()
	if got := list(); !slices.Contains(got, a) || !slices.Contains(got, b) {
		t.Errorf("listed %v when the faults are over", got)
	}
}

func TestOmit(t *testing.T) {
	rt := Faulty(NewRuntime())
	a, _ := run(t, rt, "a")
	b, _ := run(t, rt, "b")
	rt.Add(Fault{Pod: a, Container: "c", Effect: Omit()}, Fault{Pod: b, Effect: Omit()})
	var snap podmill.Snapshot
	if err := rt.ListPods(t.Context(), &snap); err != nil {
		t.Fatal(err)
	}
	if seen, err := rt.InspectPod(t.Context(), a); err != nil || len(seen.Sandboxes) != 1 || len(seen.Containers) != 0 {
		t.Errorf("inspected %+v, %v, want a sandbox alone", seen, err)
	}
	if seen, err := rt.InspectPod(t.Context(), b); err != nil || !seen.Empty() {
		t.Errorf("inspected %+v, %v, want nothing", seen, err)
	}
}

func TestOmittedEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := Faulty(NewRuntime())
		a, b := Pod("a", Container("c", "i")), Pod("b", Container("c", "i"))
		rt.Add(Fault{On: OpStreamEvents, Pod: a.UID, Effect: Omit()})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		var events []types.UID
		go func() {
			ended <- rt.StreamEvents(ctx, func() {}, func(e podmill.RuntimeEvent) { events = append(events, e.Pod) })
		}()
		synctest.Wait()
		launched(t, rt, a)
		launched(t, rt, b)
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("StreamEvents: %v", err)
		}
		if len(events) == 0 || slices.Contains(events, a.UID) {
			t.Errorf("events %v, want some of %s and none of %s", events, b.UID, a.UID)
		}
	})
}

// Chance must not depend on what other pods do meanwhile.
func TestLuckIsRepeatableAndFair(t *testing.T) {
	draw := func(other bool) (hits []int) {
		rt := Faulty(NewRuntime(), Fault{On: OpInspectPod, OneIn: 4, Seed: 7, Effect: Fail(errFault)})
		for i := range 1000 {
			if other {
				_, _ = rt.InspectPod(t.Context(), "other")
			}
			if _, err := rt.InspectPod(t.Context(), "one"); err != nil {
				hits = append(hits, i)
			}
		}
		return hits
	}
	alone := draw(false)
	if beside := draw(true); !slices.Equal(alone, beside) {
		t.Errorf("alone it failed %d times, beside another pod %d times, and not the same", len(alone), len(beside))
	}
	if n := len(alone); n < 200 || n > 300 {
		t.Errorf("one call in four should fail, %d of 1000 did", n)
	}
}

func TestOptionalInterfacesAreFoundThroughTheWrapper(t *testing.T) {
	inner := NewRuntime(WithoutEvents())
	rt := Faulty(inner, Fault{On: OpRuntimeStatus, Times: 1, Effect: Fail(errFault)})
	if found, ok := podmill.As[*Runtime](rt); !ok || found != inner {
		t.Error("the runtime below is not found")
	}
	reporter, _ := podmill.As[podmill.StatusReporter](rt)
	if _, err := reporter.RuntimeStatus(t.Context()); !errors.Is(err, errFault) {
		t.Errorf("RuntimeStatus: %v, want the fault", err)
	}
	streamer, _ := podmill.As[podmill.EventStreamer](rt)
	if err := streamer.StreamEvents(t.Context(), nil, nil); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("StreamEvents: %v, want ErrUnsupported", err)
	}
	if !strings.Contains(inner.Log().String(), "fault: RuntimeStatus fails") {
		t.Errorf("the log does not tell of the fault:\n%s", inner.Log())
	}
}

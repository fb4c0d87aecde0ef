package pleg_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/pleg"
)

func TestAnEventLeadsToAnInspectionOfThatPodOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runtime := newStreaming()
		runtime.connect <- nil
		runtime.set("a", running("c1"))
		runtime.set("b", running("c2"))
		p, told := start(t, runtime)
		lists := runtime.listed()
		runtime.set("a", exited("c1"))
		runtime.set("b", exited("c2"))
		told.takeEvents()
		runtime.events <- podmill.RuntimeEvent{Pod: "a"}
		time.Sleep(11 * time.Second) // nobody asks
		synctest.Wait()
		wantEvents(t, told, "ContainerDied c1")
		wantTruth(t, runtime.fakeRuntime, p, "a")
		if runtime.listed() != lists {
			t.Error("an event made a listing")
		}
	})
}

// Whoever is at work on a pod causes events. They make what is known no longer good enough, and nobody is asked for more until it matters.
func TestAnEventIsAnsweredByOneInspectionWhenSomebodyObserves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runtime := newStreaming()
		runtime.connect <- nil
		p, told := start(t, runtime)
		before := runtime.inspected("a")
		told.takeEvents()
		for _, c := range []podmill.Container{running("c1"), exited("c1")} {
			runtime.set("a", c)
			runtime.events <- podmill.RuntimeEvent{Pod: "a"}
			time.Sleep(500 * time.Millisecond)
		}
		if n := runtime.inspected("a") - before; n != 0 {
			t.Errorf("%d inspections that nobody asked for", n)
		}
		if pod := observe(t, p, "a", false); pod.Containers[0].State != podmill.StateExited {
			t.Errorf("c1 is %v, which was before the last event", pod.Containers[0].State)
		}
		time.Sleep(10 * time.Second)
		if n := runtime.inspected("a") - before; n != 1 {
			t.Errorf("%d inspections, want 1", n)
		}
	})
}

// A stream is drained however slow the runtime is, and however much it says: the pods bound what is waiting.
func TestAFloodOfEventsIsDrainedAndCoalesced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runtime := newStreaming()
		runtime.connect <- nil
		p, _ := start(t, runtime)
		runtime.set("a", running("c1"))
		runtime.fault(func(r *fakeRuntime) { r.afterInspect = func(types.UID) { time.Sleep(time.Second) } })
		var early sync.WaitGroup
		early.Go(func() { observe(t, p, "a", true) })
		defer early.Wait()
		synctest.Wait()
		began := time.Now()
		for range 10_000 {
			runtime.events <- podmill.RuntimeEvent{Pod: "a"}
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("the stream waited %v", took)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := runtime.inspected("a"); n != 2 {
			t.Errorf("%d inspections, want the one under way and one after it", n)
		}
	})
}

func TestTheNetIsSlowWhileTheStreamIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runtime := newStreaming()
		runtime.connect <- nil
		runtime.set("a", running("c1"))
		p, told := start(t, runtime)
		told.takeEvents()
		lists := runtime.listed()
		time.Sleep(10 * time.Minute)
		if n := runtime.listed() - lists; n < 9 || n > 10 {
			t.Errorf("%d listings in 10 minutes", n)
		}
		runtime.set("a", exited("c1")) // and the event is lost
		time.Sleep(time.Minute)
		synctest.Wait()
		wantEvents(t, told, "ContainerDied c1")
		wantTruth(t, runtime.fakeRuntime, p, "a")
	})
}

func TestAListingThatFailsIsRepeatedSoonWhileTheStreamIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runtime := newStreaming()
		runtime.connect <- nil
		runtime.beforeList = func(context.Context) error { return errFault }
		p, _ := start(t, runtime)
		runtime.fault(func(r *fakeRuntime) { r.beforeList = nil })
		time.Sleep(time.Second)
		synctest.Wait()
		if err := p.Healthy(); err != nil {
			t.Error(err)
		}
	})
}

func TestEveryReconnectLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runtime := newStreaming()
		runtime.connect <- nil
		runtime.set("a", running("c1"))
		var ups, downs int
		_, told := start(t, runtime, pleg.WithObserver(pleg.Observer{Stream: func(up bool, reason error) {
			if up {
				ups++
			} else {
				downs++
				if reason == nil {
					t.Error("down without a reason")
				}
			}
		}}))
		told.takePods()

		runtime.broken <- errFault
		synctest.Wait()
		lists := runtime.listed()
		time.Sleep(10 * time.Second) // no stream: the period is that of listing alone
		if n := runtime.listed() - lists; n < 9 {
			t.Errorf("%d listings in 10 s without a stream", n)
		}
		runtime.set("a", exited("c1"))
		runtime.connect <- nil
		synctest.Wait()
		if pods := told.takePods(); len(pods) != 1 {
			t.Errorf("told %v when the stream came up again, want the one pod that had changed", pods)
		}
		if ups != 2 || downs != 1 {
			t.Errorf("up %d times and down %d times", ups, downs)
		}
	})
}

func TestAStreamThatIsRefusedIsTriedAgainWithBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runtime := newStreaming()
		var tries atomic.Int32
		start(t, runtime, pleg.WithObserver(pleg.Observer{Stream: func(bool, error) { tries.Add(1) }}))
		stop := time.After(10 * time.Minute)
		for refusing := true; refusing; {
			select {
			case runtime.connect <- errFault:
			case <-stop:
				refusing = false
			}
		}
		synctest.Wait()
		if n := tries.Load(); n < 20 || n > 40 {
			t.Errorf("%d tries in 10 minutes", n)
		}
		time.Sleep(10 * time.Minute) // the last refusals
		runtime.connect <- nil
		time.Sleep(2 * time.Minute)
		runtime.broken <- errFault // the first time after a long while
		tries.Store(0)
		runtime.connect <- errFault
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		if tries.Load() != 2 { // down, and refused
			t.Error("not tried again soon")
		}
	})
}

func TestARuntimeWithoutEventsIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runtime := newStreaming()
		runtime.connect <- errors.ErrUnsupported
		_, told := start(t, runtime)
		runtime.set("a", running("c1"))
		time.Sleep(time.Second)
		synctest.Wait()
		wantEvents(t, told, "ContainerStarted sandbox-a", "ContainerStarted c1")
		if len(runtime.connect) != 0 {
			t.Error("not asked for events")
		}
		runtime.connect <- nil
		time.Sleep(time.Hour)
		if len(runtime.connect) != 1 {
			t.Error("asked for events again")
		}
	})
}

// What the agent does itself comes back to it as events. Those that say no more than what it has seen since are no reason to look again.
func TestAnEventThatIsNoNewsIsDropped(t *testing.T) {
	for what, tc := range map[string]struct {
		event podmill.RuntimeEvent
		looks int
	}{
		"it is known to run":        {podmill.RuntimeEvent{Pod: "a", ID: "c1", State: podmill.StateRunning}, 0},
		"it was created before":     {podmill.RuntimeEvent{Pod: "a", ID: "c1", State: podmill.StateCreated}, 0},
		"it has exited":             {podmill.RuntimeEvent{Pod: "a", ID: "c1", State: podmill.StateExited}, 1},
		"another one was created":   {podmill.RuntimeEvent{Pod: "a", ID: "c2", State: podmill.StateCreated}, 1},
		"something was removed":     {podmill.RuntimeEvent{Pod: "a", ID: "c1"}, 1},
		"it does not say of what":   {podmill.RuntimeEvent{Pod: "a", State: podmill.StateRunning}, 1},
		"it says only whose it is":  {podmill.RuntimeEvent{Pod: "a"}, 1},
		"of a pod that is not held": {podmill.RuntimeEvent{Pod: "b", ID: "c1", State: podmill.StateRunning}, 1},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				runtime := newStreaming()
				runtime.connect <- nil
				runtime.set("a", running("c1"))
				p, _ := start(t, runtime)
				observe(t, p, "a", true)
				synctest.Wait() // what the stream's coming up has led to
				before := runtime.inspected(tc.event.Pod)
				runtime.events <- tc.event
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if n := runtime.inspected(tc.event.Pod) - before; n != tc.looks {
					t.Errorf("%d inspections, want %d", n, tc.looks)
				}
			})
		})
	}
}

// An event that comes while a look is under way may have been seen by it, or not.
func TestAnEventDuringALookIsNewsUnlessTheLookHasSeenIt(t *testing.T) {
	for state, looks := range map[podmill.State]int{podmill.StateRunning: 1, podmill.StateExited: 2} {
		t.Run(state.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				runtime := newStreaming()
				runtime.connect <- nil
				p, _ := start(t, runtime)
				runtime.set("a", running("c1"))
				runtime.fault(func(r *fakeRuntime) { r.afterInspect = func(types.UID) { time.Sleep(time.Second) } })
				var looking sync.WaitGroup
				looking.Go(func() { observe(t, p, "a", true) })
				synctest.Wait()
				runtime.events <- podmill.RuntimeEvent{Pod: "a", ID: "c1", State: state}
				looking.Wait()
				observe(t, p, "a", false)
				time.Sleep(10 * time.Second)
				if n := runtime.inspected("a"); n != looks {
					t.Errorf("%d inspections, want %d", n, looks)
				}
			})
		})
	}
}

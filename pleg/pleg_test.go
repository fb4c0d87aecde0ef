package pleg_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/pleg"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs a PLEG over a runtime until the test ends, in a bubble, and lets it look for the first time.
func start(t *testing.T, runtime podmill.Lister, opts ...pleg.Option) (*pleg.PLEG, *notes) {
	t.Helper()
	told := &notes{}
	opts = append([]pleg.Option{pleg.WithObserver(pleg.Observer{
		Event: func(e pleg.Event) { told.event(string(e.Type) + " " + e.ID) },
	})}, opts...)
	p := pleg.New(runtime, told.notify, opts...)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	synctest.Wait()
	return p, told
}

func observe(t *testing.T, p *pleg.PLEG, uid types.UID, fresh bool) *podmill.RuntimePod {
	t.Helper()
	pod, err := p.Observe(t.Context(), uid, fresh)
	if err != nil {
		t.Fatalf("Observe: %v", err)
	}
	return pod
}

func wantTruth(t *testing.T, runtime *fakeRuntime, p *pleg.PLEG, uid types.UID) {
	t.Helper()
	pods, ok := p.Pods()
	if !ok {
		t.Fatal("nothing was listed")
	}
	known := &podmill.RuntimePod{PodRef: podmill.PodRef{UID: uid}}
	if i := slices.IndexFunc(pods, func(p *podmill.RuntimePod) bool { return p.UID == uid }); i >= 0 {
		known = pods[i]
	}
	if d := cmp.Diff(runtime.truth(uid), known); d != "" {
		t.Errorf("pod %s is known otherwise than it is (-is +known):\n%s", uid, d)
	}
}

func wantEvents(t *testing.T, told *notes, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, told.takeEvents()); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
}

func TestWhatIsThereAtTheStartIsKnownAndTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runtime := newRuntime()
		runtime.set("a", running("c1"))
		p, told := start(t, runtime)
		wantTruth(t, runtime, p, "a")
		wantEvents(t, told, "ContainerStarted sandbox-a", "ContainerStarted c1")
		if d := cmp.Diff([]types.UID{"a"}, told.takePods()); d != "" {
			t.Error(d)
		}
		if err := p.Healthy(); err != nil {
			t.Error(err)
		}
	})
}

// B071: what happened between two looks is told in full.
func TestBothTheEndOfOneContainerAndTheStartOfTheNextAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runtime := newRuntime()
		runtime.set("a", running("c1"))
		p, told := start(t, runtime)
		told.takeEvents()

		runtime.set("a", running("c2"), exited("c1"))
		time.Sleep(time.Second)
		synctest.Wait()
		wantEvents(t, told, "ContainerDied c1", "ContainerStarted c2")

		runtime.set("a", running("c3"), exited("c1")) // c2 is gone altogether
		time.Sleep(time.Second)
		synctest.Wait()
		wantEvents(t, told, "ContainerDied c2", "ContainerRemoved c2", "ContainerStarted c3")
		wantTruth(t, runtime, p, "a")
	})
}

// B027: an inspection that failed is repeated although no listing shows a change, and its error poisons nothing.
func TestAFailedInspectionIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runtime := newRuntime()
		runtime.set("a", running("c1"))
		runtime.beforeInspect = func(context.Context, types.UID) error { return errFault }
		p, told := start(t, runtime)
		if _, err := p.Observe(t.Context(), "a", false); !errors.Is(err, errFault) {
			t.Errorf("Observe says %v, want the runtime's error", err)
		}
		if pods, _ := p.Pods(); len(pods) != 1 || pods[0].Empty() || pods[0].Name != "pod-a" {
			t.Errorf("Pods are %v, want the pod as it was listed", pods)
		}
		wantEvents(t, told)

		runtime.fault(func(r *fakeRuntime) { r.beforeInspect = nil })
		time.Sleep(4 * time.Second)
		synctest.Wait()
		wantEvents(t, told, "ContainerStarted sandbox-a", "ContainerStarted c1")
		wantTruth(t, runtime, p, "a")
		tries := runtime.inspected("a")
		observe(t, p, "a", false)
		time.Sleep(time.Hour)
		if more := runtime.inspected("a") - tries; more != 0 {
			t.Errorf("%d inspections of a pod that is known and does not change", more)
		}
	})
}

// A pod that was known and whose last inspection failed is known to be out of date.
func TestAnObservationIsNotTakenFromBeforeAFailedInspection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runtime := newRuntime()
		runtime.set("a", running("c1"))
		p, _ := start(t, runtime)
		runtime.fault(func(r *fakeRuntime) {
			r.beforeInspect = func(context.Context, types.UID) error { return errFault }
		})
		runtime.set("a", exited("c1"))
		p.Hint("a")
		synctest.Wait()
		if _, err := p.Observe(t.Context(), "a", false); !errors.Is(err, errFault) {
			t.Errorf("Observe says %v, want the runtime's error", err)
		}
		if pods, _ := p.Pods(); len(pods) != 1 {
			t.Errorf("Pods are %v, want the pod as it was known", pods)
		}
		runtime.fault(func(r *fakeRuntime) { r.beforeInspect = nil })
		if pod := observe(t, p, "a", false); pod.Containers[0].State != podmill.StateExited {
			t.Errorf("c1 is %v", pod.Containers[0].State)
		}
	})
}

func TestAFailingPodIsRetriedEverLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runtime := newRuntime()
		runtime.set("a", running("c1"))
		runtime.beforeInspect = func(context.Context, types.UID) error { return errFault }
		start(t, runtime)
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := runtime.inspected("a"); n < 120 || n > 160 {
			t.Errorf("%d tries within an hour, want one each 24 to 30 s", n)
		}
	})
}

// B038: pods that cannot be inspected are their own problem.
func TestHangingInspectionsDelayNoOtherPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runtime := newRuntime()
		runtime.beforeInspect = func(ctx context.Context, uid types.UID) error {
			if strings.HasPrefix(string(uid), "bad") {
				return hang(ctx)
			}
			return nil
		}
		bad := []types.UID{"bad1", "bad2", "bad3", "bad4"}
		for _, uid := range bad {
			runtime.set(uid, running("c-"+string(uid)))
		}
		p, told := start(t, runtime, pleg.WithParallel(2))
		runtime.set("good", running("c1"))

		began := time.Now()
		observe(t, p, "good", true)
		if took := time.Since(began); took != 0 {
			t.Errorf("a caller waited %v", took)
		}
		synctest.Wait()
		told.takeEvents()
		runtime.set("good", exited("c1"))
		p.Hint("good")
		time.Sleep(12 * time.Second) // nobody asks, and then two rounds of two are found to be slow
		synctest.Wait()
		wantEvents(t, told, "ContainerDied c1")

		for range 10 {
			for _, uid := range bad {
				p.Hint(uid)
			}
			time.Sleep(10 * time.Second)
		}
		synctest.Wait()
		for _, uid := range bad {
			if n := runtime.inspected(uid); n != 1 {
				t.Errorf("%d inspections of %s at a time, want 1", n, uid)
			}
		}
		if pods, _ := p.Pods(); len(pods) != 5 {
			t.Errorf("%d pods, want 5", len(pods))
		}
	})
}

func TestAFreshObservationBeginsAfterTheCallAndIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runtime := newRuntime()
		runtime.set("a", running("c1"))
		p, _ := start(t, runtime, pleg.WithPeriod(time.Hour))
		runtime.fault(func(r *fakeRuntime) { r.afterInspect = func(types.UID) { time.Sleep(10 * time.Second) } })

		var early sync.WaitGroup
		early.Go(func() { observe(t, p, "a", true) }) // looks, and answers late
		defer early.Wait()
		synctest.Wait()
		runtime.set("a", exited("c1"))
		before := runtime.inspected("a")
		var callers sync.WaitGroup
		for range 100 {
			callers.Go(func() {
				if pod := observe(t, p, "a", true); pod.Containers[0].State != podmill.StateExited {
					t.Errorf("c1 is %v, as it was before the call", pod.Containers[0].State)
				}
			})
		}
		synctest.Wait()
		if pod := observe(t, p, "a", false); pod.Containers[0].State != podmill.StateRunning {
			t.Errorf("c1 is %v, want what is known", pod.Containers[0].State)
		}
		callers.Wait()
		if n := runtime.inspected("a") - before; n != 1 {
			t.Errorf("%d inspections for 100 callers, want 1", n)
		}
	})
}

// B010: no clock decides what is newer. Everything here happens at one instant, and one of the sandboxes is from the future.
func TestFreshnessNeedsNoClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runtime := newRuntime()
		runtime.set("a", running("c1"))
		runtime.pods["a"].Sandboxes[0].CreatedAt = time.Now().Add(2 * time.Hour)
		p, _ := start(t, runtime)
		began := time.Now()
		for range 10 {
			runtime.set("a", exited("c1"))
			if pod := observe(t, p, "a", true); pod.Containers[0].State != podmill.StateExited {
				t.Fatal("a fresh look shows what was before")
			}
			runtime.set("a", running("c1"))
			if pod := observe(t, p, "a", true); pod.Containers[0].State != podmill.StateRunning {
				t.Fatal("a fresh look shows what was before")
			}
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("waited %v", took)
		}
	})
}

func TestAPodThatTheRuntimeDoesNotHoldCostsNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runtime := newRuntime()
		p, _ := start(t, runtime)
		if pod := observe(t, p, "new", false); !pod.Empty() || pod.UID != "new" {
			t.Errorf("observed %v", pod)
		}
		if n := runtime.inspected("new"); n != 0 {
			t.Errorf("%d inspections", n)
		}
	})
}

func TestBeforeTheFirstListingAPodIsInspected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runtime := newRuntime()
		runtime.set("a", running("c1"))
		runtime.beforeList = hang
		p, _ := start(t, runtime)
		if pod := observe(t, p, "a", false); pod.Empty() {
			t.Error("taken to be absent without a look")
		}
		if _, ok := p.Pods(); ok {
			t.Error("Pods is ok without a listing")
		}
		if err := p.Healthy(); err == nil || err.Error() != "pleg has yet to be successful" {
			t.Errorf("Healthy: %v", err)
		}
	})
}

func TestAPodThatIsGoneIsToldOnceAndForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runtime := newRuntime()
		runtime.set("a", running("c1"))
		p, told := start(t, runtime)
		told.takeEvents()
		told.takePods()
		runtime.set("a")
		time.Sleep(time.Minute)
		synctest.Wait()
		wantEvents(t, told, "ContainerDied sandbox-a", "ContainerRemoved sandbox-a", "ContainerDied c1", "ContainerRemoved c1")
		if d := cmp.Diff([]types.UID{"a"}, told.takePods()); d != "" {
			t.Error(d)
		}
		if pods, ok := p.Pods(); len(pods) != 0 || !ok {
			t.Errorf("Pods are %v, %v", pods, ok)
		}
		if pod := observe(t, p, "a", false); !pod.Empty() {
			t.Errorf("observed %v", pod)
		}
	})
}

// A listing is older than an inspection that began after it; it must not take away what that has found.
func TestALateListingTakesNothingAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runtime := newRuntime()
		p, told := start(t, lateRuntime{runtime})
		runtime.set("a", running("c1"))
		observe(t, p, "a", true)
		time.Sleep(3 * time.Second) // the empty listing, made before the pod was, comes in
		synctest.Wait()
		wantTruth(t, runtime, p, "a")
		wantEvents(t, told, "ContainerStarted sandbox-a", "ContainerStarted c1")
	})
}

// lateRuntime answers each listing with what there was two seconds before.
type lateRuntime struct{ *fakeRuntime }

func (r lateRuntime) ListPods(ctx context.Context, snap *podmill.Snapshot) error {
	err := r.fakeRuntime.ListPods(ctx, snap)
	time.Sleep(2 * time.Second)
	return err
}

func TestHealthyNoticesThatNothingWasListedForThreeMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runtime := newRuntime()
		p, _ := start(t, runtime)
		runtime.fault(func(r *fakeRuntime) { r.beforeList = func(context.Context) error { return errFault } })
		time.Sleep(3 * time.Minute)
		if err := p.Healthy(); err != nil {
			t.Errorf("unhealthy too early: %v", err)
		}
		time.Sleep(time.Second)
		if err := p.Healthy(); err == nil || err.Error() != "pleg was last seen active 3m1s ago; threshold is 3m0s" {
			t.Errorf("Healthy: %v", err)
		}
		runtime.fault(func(r *fakeRuntime) { r.beforeList = nil })
		time.Sleep(time.Second)
		synctest.Wait()
		if err := p.Healthy(); err != nil {
			t.Errorf("still unhealthy: %v", err)
		}
	})
}

func TestAListingThatHangsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runtime := newRuntime()
		var relists []error
		runtime.beforeList = hang
		start(t, runtime, pleg.WithTimeout(5*time.Second), pleg.WithObserver(pleg.Observer{
			Relist: func(took time.Duration, err error) {
				if took != 5*time.Second {
					t.Errorf("took %v", took)
				}
				relists = append(relists, err)
			},
		}))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		runtime.fault(func(r *fakeRuntime) { r.beforeList = nil })
		if len(relists) != 1 || !errors.Is(relists[0], context.DeadlineExceeded) {
			t.Errorf("relists: %v", relists)
		}
	})
}

func TestObserveEndsWithItsContextAndWithRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runtime := newRuntime()
		runtime.beforeInspect = func(ctx context.Context, _ types.UID) error { return hang(ctx) }
		p := pleg.New(runtime, func(types.UID) {})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.Observe(ctx, "a", false); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Observe before Run: %v", err)
		}
		running, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		done := make(chan error)
		go func() {
			_, err := p.Observe(t.Context(), "a", true)
			done <- err
		}()
		if err := p.Run(running); err != nil {
			t.Error(err)
		}
		if err := <-done; err == nil {
			t.Error("Observe returned no error when Run had ended")
		}
		if _, err := p.Observe(t.Context(), "a", true); !errors.Is(err, pleg.ErrEnded) {
			t.Errorf("Observe after Run: %v", err)
		}
		if err := p.Run(t.Context()); err == nil {
			t.Error("Run ran twice")
		}
	})
}

package syncloop_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/syncloop"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errFault = errors.New("fault")

// B005: a source that is synced drives its own pods, whether or not another ever says something.
func TestASyncedSourceDrivesItsOwnPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file, api := newSource("file"), newSource("api")
		runtime, w := &fakeRuntime{}, newWorkers()
		runtime.holds([2]string{"static", "file"}, [2]string{"old", "file"}, [2]string{"cluster", "api"}, [2]string{"unknown", ""})
		start(t, w, syncloop.NewInbox(), []*fakeSource{file, api}, syncloop.WithHousekeeping(runtime.Pods))

		file.replace(newPod("static", "v1"))
		w.wantTold(t, "update static v1")
		tick()
		w.wantTold(t, "orphan old") // the pods of the API, and those that could be its, are left alone
		file.replace()
		w.wantTold(t, "remove static")
		file.replace(newPod("static", "v2"))
		w.wantTold(t, "update static v2")
		time.Sleep(10 * time.Minute)
		w.wantTold(t)
		api.replace(newPod("cluster", "v1"))
		tick()
		w.wantTold(t, "update cluster v1", "orphan unknown")
	})
}

// B009: only sources that are registered are waited for.
func TestAPodOfASourceThatIsNotRegisteredIsAnOrphan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := newSource("file")
		runtime, w, c := &fakeRuntime{}, newWorkers(), &fakeCleaner{has: []types.UID{"a", "left"}}
		runtime.holds([2]string{"left", "api"})
		start(t, w, syncloop.NewInbox(), []*fakeSource{file}, syncloop.WithHousekeeping(runtime.Pods, c))
		tick()
		w.wantTold(t)
		file.replace(newPod("a", "v1"))
		tick()
		w.wantTold(t, "update a v1", "orphan left")
		c.wantCleaned(t)

		runtime.holds([2]string{"a", "file"})
		w.finish("left")
		tick()
		c.wantCleaned(t, "left")
		file.replace()
		tick()
		w.wantTold(t, "remove a")
		c.wantCleaned(t) // it still runs
		w.finish("a")
		runtime.holds()
		tick()
		c.wantCleaned(t, "a")
	})
}

// B093: a list that may be partial says so.
func TestPodsSaysWhetherAllSourcesHaveSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file, api := newSource("file"), newSource("api")
		l := start(t, newWorkers(), syncloop.NewInbox(), []*fakeSource{file, api})
		file.replace(newPod("a", "v1"))
		synctest.Wait()
		if pods, synced := l.Pods(); len(pods) != 1 || synced {
			t.Errorf("%d pods, synced is %v", len(pods), synced)
		}
		api.replace()
		synctest.Wait()
		if pods, synced := l.Pods(); len(pods) != 1 || !synced {
			t.Errorf("%d pods, synced is %v", len(pods), synced)
		}
		if pod, ok := l.Pod("a"); !ok || pod.Name != "pod-a" {
			t.Errorf("Pod: %v, %v", pod, ok)
		}
		if _, ok := l.Pod("b"); ok {
			t.Error("a pod that nobody wants is there")
		}
	})
}

func TestWithoutSourcesNothingIsAnOrphan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runtime, w, c := &fakeRuntime{}, newWorkers(), &fakeCleaner{has: []types.UID{"b"}}
		runtime.holds([2]string{"a", "file"})
		l := start(t, w, syncloop.NewInbox(), nil, syncloop.WithHousekeeping(runtime.Pods, c))
		time.Sleep(time.Minute)
		w.wantTold(t)
		c.wantCleaned(t)
		if _, synced := l.Pods(); synced {
			t.Error("synced without a source")
		}
	})
}

func TestNothingIsCleanedBeforeTheRuntimeWasListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := newSource("file")
		runtime, w, c := &fakeRuntime{}, newWorkers(), &fakeCleaner{has: []types.UID{"a", "b"}}
		start(t, w, syncloop.NewInbox(), []*fakeSource{file}, syncloop.WithHousekeeping(runtime.Pods, c))
		file.replace()
		time.Sleep(10 * time.Minute)
		c.wantCleaned(t)
		runtime.holds([2]string{"a", "file"})
		tick()
		c.wantCleaned(t, "b")
	})
}

func TestWhatTheRuntimeHoldsIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := newSource("file")
		runtime, w, c := &fakeRuntime{}, newWorkers(), &fakeCleaner{has: []types.UID{"a"}}
		w.quick = true
		runtime.holds([2]string{"a", "file"})
		start(t, w, syncloop.NewInbox(), []*fakeSource{file}, syncloop.WithHousekeeping(runtime.Pods, c))
		file.replace()
		tick()
		w.wantTold(t, "orphan a")
		c.wantCleaned(t)
		runtime.holds()
		tick()
		c.wantCleaned(t, "a")
	})
}

// What the runtime holds of pods that have a worker is the worker's business, in the end too.
func TestWorkersHearOfWhatIsHeldOfTheirPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := newSource("file")
		runtime, w := &fakeRuntime{}, newWorkers()
		runtime.holds([2]string{"a", "file"}, [2]string{"theirs", "file"})
		own := func(pod *podmill.RuntimePod) bool { return pod.UID != "theirs" }
		start(t, w, syncloop.NewInbox(), []*fakeSource{file}, syncloop.WithHousekeeping(runtime.Pods), syncloop.WithOwn(own))
		file.replace(newPod("a", "v1"), newPod("b", "v1"), newPod("theirs", "v1"))
		tick()
		w.mu.Lock()
		defer w.mu.Unlock()
		if d := cmp.Diff([]types.UID{"a"}, w.leftover); d != "" {
			t.Error(d)
		}
	})
}

// A pod of somebody else, or one of which it is not known yet whose it is, is neither torn down nor cleaned up after.
func TestWhatIsNotOnesOwnIsNoOrphanAndIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := newSource("file")
		runtime, w, c := &fakeRuntime{}, newWorkers(), &fakeCleaner{has: []types.UID{"theirs", "gone"}}
		runtime.holds([2]string{"theirs", "file"}, [2]string{"ours", "file"})
		own := func(pod *podmill.RuntimePod) bool { return pod.UID == "ours" }
		start(t, w, syncloop.NewInbox(), []*fakeSource{file}, syncloop.WithHousekeeping(runtime.Pods, c), syncloop.WithOwn(own))
		file.replace()
		tick()
		w.wantTold(t, "orphan ours")
		c.wantCleaned(t, "gone")
	})
}

func TestKeysReachTheWorkersOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inbox, w := syncloop.NewInbox(), newWorkers()
		w.stall = make(chan struct{})
		inbox.Put("a")
		l := start(t, w, inbox, nil)
		w.wantTold(t, "sync a") // and the loop is held up
		for range 1000 {
			inbox.Put("b")
			inbox.Put("a")
			inbox.Put("c")
		}
		time.Sleep(2 * time.Minute)
		if err := l.Healthy(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		if err := l.Healthy(); err == nil || err.Error() != "sync loop was last seen active 2m1s ago; threshold is 2m0s" {
			t.Errorf("Healthy: %v", err)
		}
		close(w.stall)
		w.wantTold(t, "sync b", "sync a", "sync c")
		if err := l.Healthy(); err != nil {
			t.Error(err)
		}
	})
}

func TestHealthyBeforeRun(t *testing.T) {
	if err := syncloop.New(newWorkers(), syncloop.NewInbox(), nil).Healthy(); err == nil {
		t.Error("a loop that does not run is healthy")
	}
}

func TestASourceThatFailsIsRunAgainAndItsPodsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file, w := newSource("file"), newWorkers()
		var waits []time.Duration
		l := start(t, w, syncloop.NewInbox(), []*fakeSource{file}, syncloop.WithObserver(syncloop.Observer{
			SourceFailed: func(source string, err error, again time.Duration) {
				if source != "file" || !errors.Is(err, errFault) {
					t.Errorf("%s failed: %v", source, err)
				}
				waits = append(waits, again.Round(time.Second))
			},
		}))
		file.replace(newPod("a", "v1"))
		w.wantTold(t, "update a v1")
		for range 8 {
			file.fail <- errFault
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if file.runs != 9 || len(waits) != 8 || waits[0] != time.Second || waits[7] < 24*time.Second || waits[7] > 30*time.Second {
			t.Errorf("run %d times, waited %v", file.runs, waits)
		}
		if pods, synced := l.Pods(); len(pods) != 1 || !synced {
			t.Errorf("%d pods, synced is %v", len(pods), synced)
		}
		file.replace(newPod("a", "v2"))
		w.wantTold(t, "update a v2")

		time.Sleep(2 * time.Minute) // it is well again, and what follows is its first failure
		file.fail <- errFault
		time.Sleep(time.Second)
		synctest.Wait()
		if file.runs != 10 {
			t.Errorf("waited %v", waits)
		}
		file.fail <- nil // it has nothing more to say
		time.Sleep(10 * time.Minute)
		w.wantTold(t)
		if file.runs != 10 {
			t.Error("run again")
		}
	})
}

func TestACleanerThatHangsStopsNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file, inbox := newSource("file"), syncloop.NewInbox()
		runtime, w, c := &fakeRuntime{}, newWorkers(), &fakeCleaner{hang: true}
		runtime.holds()
		l := start(t, w, inbox, []*fakeSource{file}, syncloop.WithHousekeeping(runtime.Pods, c))
		file.replace()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if c.rounds != 1 {
			t.Errorf("%d rounds at a time, want 1", c.rounds)
		}
		file.upsert(newPod("a", "v1"))
		inbox.Put("a")
		runtime.holds([2]string{"b", "file"})
		tick()
		w.wantTold(t, "update a v1", "sync a", "orphan b")
		if err := l.Healthy(); err != nil {
			t.Error(err)
		}
	})
}

// At rest the cleaners come every half minute, and at once after a pod has gone.
func TestCleanersRestWhenNothingGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file, runtime, w, c := newSource("file"), &fakeRuntime{}, newWorkers(), &fakeCleaner{}
		runtime.holds()
		start(t, w, syncloop.NewInbox(), []*fakeSource{file}, syncloop.WithHousekeeping(runtime.Pods, c))
		file.replace(newPod("a", "v1"))
		rounds := func(want int) {
			t.Helper()
			synctest.Wait()
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.rounds != want {
				t.Errorf("%d rounds of cleaning, want %d", c.rounds, want)
			}
		}
		tick()
		rounds(1)
		time.Sleep(10 * time.Minute)
		rounds(21)
		file.upsert(newPod("b", "v1"))
		tick()
		rounds(21)
		file.remove(newPod("b", "v1"))
		tick()
		rounds(21) // a worker knows it
		w.finish("b")
		c.find("b")
		tick()
		rounds(22)
		c.wantCleaned(t, "b")
	})
}

func TestACleanerThatFailsHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file, runtime := newSource("file"), &fakeRuntime{}
		bad, good := &fakeCleaner{err: errFault}, &fakeCleaner{has: []types.UID{"a"}}
		runtime.holds()
		var errs []error
		start(t, newWorkers(), syncloop.NewInbox(), []*fakeSource{file}, syncloop.WithHousekeeping(runtime.Pods, bad, good),
			syncloop.WithObserver(syncloop.Observer{Cleanup: func(_ time.Duration, err error) { errs = append(errs, err) }}))
		file.replace()
		tick()
		good.wantCleaned(t, "a")
		tick()
		synctest.Wait()
		if len(errs) != 2 || !errors.Is(errs[0], errFault) {
			t.Errorf("rounds ended with %v", errs)
		}
	})
}

func TestAConflictIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file, api, w := newSource("file"), newSource("api"), newWorkers()
		var said []string
		start(t, w, syncloop.NewInbox(), []*fakeSource{file, api}, syncloop.WithObserver(syncloop.Observer{
			Conflict: func(pod podmill.PodRef, kept, ignored string) {
				said = append(said, string(pod.UID)+": "+kept+", not "+ignored)
			},
		}))
		api.replace(newPod("a", "api"))
		file.replace(newPod("a", "file"))
		file.replace(newPod("a", "file"))
		w.wantTold(t, "update a api", "update a file")
		api.upsert(newPod("a", "api2"))
		w.wantTold(t)
		file.remove(newPod("a", "file"))
		w.wantTold(t, "update a api2")
		file.upsert(newPod("a", "api2"))
		w.wantTold(t) // whoever wants it, it is the same
		if d := cmp.Diff([]string{"a: file, not api", "a: file, not api"}, said); d != "" {
			t.Error(d)
		}
	})
}

func TestRunRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := start(t, newWorkers(), syncloop.NewInbox(), nil)
		if err := l.Run(t.Context()); err == nil {
			t.Error("Run ran twice")
		}
	})
}

// B014, as the loop sees it: a static pod of a name waits for what the runtime says of a former pod of that name, and only of that one.
func TestAStaticPodWaitsUntilItsNameIsSure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, file, inbox, rt := newWorkers(), newSource("file"), syncloop.NewInbox(), &fakeRuntime{}
		start(t, w, inbox, []*fakeSource{file}, syncloop.WithHousekeeping(rt.Pods))
		web, db := staticPod("new", "web"), staticPod("other", "db")
		file.replace(web, db)
		w.wantTold(t)

		former := &podmill.RuntimePod{PodRef: podmill.PodRef{UID: "old", Name: "web"}, Sandboxes: []podmill.Sandbox{{ID: "s"}}}
		rt.set(former) // as a listing has it
		inbox.Put("old")
		w.wantTold(t, "update other db", "sync old")

		file.upsert(staticPod("new", "web"))
		w.wantTold(t)
		looked := *former
		looked.Sandboxes = []podmill.Sandbox{{ID: "s", CreatedAt: time.Now(), Annotations: map[string]string{podmill.AnnotationConfigSource: "file"}}}
		rt.set(&looked)
		inbox.Put("old")
		w.wantTold(t, "orphan old", "update new web", "sync old")
	})
}

func TestAStaticPodThatIsTakenBackWhileItWaitsIsNotStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, file, inbox, rt := newWorkers(), newSource("file"), syncloop.NewInbox(), &fakeRuntime{}
		start(t, w, inbox, []*fakeSource{file}, syncloop.WithHousekeeping(rt.Pods))
		file.replace(staticPod("new", "web"))
		file.replace()
		rt.set()
		inbox.Put("new")
		w.wantTold(t, "remove new", "sync new")
	})
}

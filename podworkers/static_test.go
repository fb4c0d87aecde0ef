package podworkers_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/podworkers"
)

// stopsIn is a StopFunc of pods that take that long to stop.
func stopsIn(d time.Duration) func(context.Context, *corev1.Pod, podmill.Termination) error {
	return func(ctx context.Context, _ *corev1.Pod, _ podmill.Termination) error { return sleep(ctx, d) }
}

// B001: a static manifest that is removed and put back identical runs again, and several flips are one restart.
func TestARemovedPodThatComesBackStartsAfreshOnce(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		s.StopFunc = stopsIn(10 * time.Second)
		w.Update(pod("a", static("web"), v("1")))
		pass(time.Second)
		for range 5 {
			w.Remove("a")
			pass(time.Second)
			w.Update(pod("a", static("web"), v("2")))
		}
		w.Update(pod("a", static("web"), v("3")))
		if got := w.Pods(); len(got) != 1 || got[0].State != podworkers.Terminating || !got[0].Again {
			t.Errorf("%+v", got)
		}
		pass(time.Hour)
		s.expect(t, `
			0s sync a/1
			1s stop a/1 by 31s
			11s clean a/1
			11s sync a/3`)
		expectStates(t, w, "a syncing")
	})
}

func TestARemovedPodThatComesBackAndGoesAgainIsGone(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		s.StopFunc = stopsIn(10 * time.Second)
		w.Update(pod("a", static("web")))
		w.Remove("a")
		w.Update(pod("a", static("web")))
		w.Remove("a")
		pass(time.Hour)
		s.expect(t, `
			0s sync a
			0s stop a by 30s
			10s clean a`)
		expectStates(t, w)
	})
}

func TestAPodThatCameBackIsKilledWithItsFormerSelf(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		s.StopFunc = untilDeadline
		w.Update(pod("a"))
		w.Remove("a")
		w.Update(pod("a", v("2")))
		done := w.Kill("a", after(5))
		w.Update(pod("a", v("3")))
		pass(time.Hour)
		s.expect(t, `
			0s sync a
			0s stop a by 30s
			0s stop a by 5s
			5s clean a
			5s stop a/3 by 10s
			10s clean a/3`)
		if !closed(done) {
			t.Error("nobody is told that it has stopped")
		}
		expectStates(t, w, "a finished")
	})
}

// B014: editing a static pod, which changes its UID, starts the new one when the old one is gone, after its whole grace.
func TestTheNextStaticPodOfANameWaitsForTheFirst(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		s.StopFunc = untilDeadline
		s.CleanFunc = func(ctx context.Context, _ *corev1.Pod) error { return sleep(ctx, 2*time.Second) }
		w.Update(pod("old", static("web"), podmilltest.Grace(time.Minute)))
		pass(time.Second)
		w.Update(pod("new", static("web")))
		w.Remove("old")
		expectStates(t, w, "new waiting", "old terminating")
		if reason := w.Pods()[0].Reason; !strings.Contains(reason, "default/web(old)") {
			t.Errorf("it does not say what it waits for: %q", reason)
		}
		pass(time.Hour)
		s.expect(t, `
			0s sync old
			1s stop old by 1m1s
			1m1s clean old
			1m3s sync new`)
		expectStates(t, w, "new syncing")
	})
}

func TestOfSeveralThatWaitForANameTheNewestGoesFirst(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		for _, uid := range []string{"a", "b", "c", "d"} {
			w.Update(pod(uid, static("web")))
			pass(time.Second)
		}
		w.Update(pod("b", static("web"), v("2"))) // which does not make it a new arrival
		w.Remove("d")                             // which has not been started: it starts nothing, so it waits for nobody
		pass(time.Second)
		w.Remove("a")
		pass(time.Second)
		s.expect(t, `
			0s sync a
			4s stop d by 34s
			4s clean d
			5s stop a by 35s
			5s clean a
			5s sync c`)
		expectStates(t, w, "b waiting", "c syncing")
		w.Kill("c", podmill.Kill{})
		s.expect(t, `
			6s stop c by 36s
			6s clean c
			6s sync b/2`)
		expectStates(t, w, "b syncing", "c finished")
	})
}

func TestAPodThatEndsInItsLineIsOutOfIt(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		s.StopFunc = func(ctx context.Context, pod *corev1.Pod, _ podmill.Termination) error {
			return sleep(ctx, map[types.UID]time.Duration{"a": 5 * time.Second, "c": 10 * time.Second}[pod.UID])
		}
		w.Update(pod("a", static("web")))
		w.Update(pod("b", static("web")))
		w.Update(pod("c", static("web")))
		w.Kill("c", podmill.Kill{})
		w.Remove("a")
		pass(time.Minute)
		s.expect(t, `
			0s sync a
			0s stop c by 30s
			0s stop a by 30s
			5s clean a
			5s sync b
			10s clean c`)
		expectStates(t, w, "b syncing", "c finished")
	})
}

func TestAPodThatComesBackTakesItsPlaceAmongThoseThatWait(t *testing.T) {
	for name, again := range map[string]bool{"it came last": true, "it came before the other": false} {
		t.Run(name, func(t *testing.T) {
			withWorkers(t, func(t *testing.T, w calm, s *story) {
				s.StopFunc = stopsIn(10 * time.Second)
				w.Update(pod("a", static("web")))
				w.Remove("a")
				first, second := "a", "b"
				if again {
					first, second = "b", "a"
				}
				w.Update(pod(first, static("web")))
				w.Update(pod(second, static("web")))
				pass(time.Minute)
				s.expect(t, `
						0s sync a
					0s stop a by 30s
					10s clean a
					10s sync `+second)
			})
		})
	}
}

func TestOnlyStaticPodsWaitForAName(t *testing.T) {
	fromAPI := podmilltest.Annotation(podmill.AnnotationConfigSource, "api")
	named := func(pod *corev1.Pod) { pod.Name = "web" }
	for name, pods := range map[string][2]*corev1.Pod{
		"the API's":       {pod("a", fromAPI, named), pod("b", fromAPI, named)},
		"without source":  {pod("a", named), pod("b", named)},
		"one is static":   {pod("a", static("web")), pod("b", named)},
		"other name":      {pod("a", static("web")), pod("b", static("web2"))},
		"other namespace": {pod("a", static("web")), pod("b", static("web"), func(pod *corev1.Pod) { pod.Namespace = "other" })},
	} {
		t.Run(name, func(t *testing.T) {
			withWorkers(t, func(t *testing.T, w calm, s *story) {
				s.StopFunc = untilDeadline
				w.Update(pods[0])
				pass(time.Second)
				w.Update(pods[1])
				expectStates(t, w, "a syncing", "b syncing")
			})
		})
	}
}

// orphan is a pod that the runtime holds, with a static pod's annotation where a name is given.
func orphan(uid, name string) *podmill.RuntimePod {
	seen := &podmill.RuntimePod{PodRef: podmill.PodRef{UID: types.UID(uid), Namespace: "default", Name: name}}
	if name != "" {
		seen.Sandboxes = []podmill.Sandbox{{Annotations: map[string]string{podmill.AnnotationConfigSource: "file"}}}
	}
	return seen
}

func TestAnOrphanIsTornDownAndForgotten(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		s.OrphanFunc = func(ctx context.Context, _ *podmill.RuntimePod) error { return sleep(ctx, 5*time.Second) }
		w.Orphan(orphan("a", ""))
		w.Remove("a")
		done := w.Kill("a", after(0))
		expectStates(t, w, "a terminating")
		if at := w.Pods()[0].Deadline; !at.IsZero() {
			t.Errorf("it has a deadline of which nobody knows: %v", at)
		}
		w.Sync("a")
		if closed(done) {
			t.Error("it is said to have stopped before it has")
		}
		pass(5 * time.Second)
		if !closed(done) {
			t.Error("nobody is told that it has stopped")
		}
		s.expect(t, `0s stop orphan default/(a)`)
		expectStates(t, w)
	})
}

func TestAnOrphanIsTornDownAsItWasSeenLast(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		newer := orphan("a", "web")
		newer.Containers = []podmill.Container{{Name: "c"}}
		var seen *podmill.RuntimePod
		s.OrphanFunc = func(_ context.Context, pod *podmill.RuntimePod) error {
			seen = pod
			if pod != newer {
				return errSync
			}
			return nil
		}
		w.Orphan(orphan("a", "web"))
		w.Orphan(newer)
		pass(time.Second)
		if seen != newer {
			t.Errorf("it was torn down as %v", seen)
		}
		expectStates(t, w)
	}, podworkers.WithBackoff(time.Second, time.Second))
}

func TestAnOrphanGivesWayToAPod(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		s.OrphanFunc = func(ctx context.Context, _ *podmill.RuntimePod) error { return sleep(ctx, 5*time.Second) }
		w.Orphan(orphan("a", ""))
		w.Update(pod("a"))
		w.Orphan(orphan("a", ""))
		pass(5 * time.Second)
		w.Orphan(orphan("a", "")) // a listing that is older than the pod
		s.expect(t, `
			0s stop orphan default/(a)
			5s sync a`)
		expectStates(t, w, "a syncing")
	})
}

// B014, when the manifest was changed while no agent ran.
func TestAStaticPodWaitsForAnOrphanOfItsName(t *testing.T) {
	withWorkers(t, func(t *testing.T, w calm, s *story) {
		s.OrphanFunc = func(ctx context.Context, _ *podmill.RuntimePod) error { return sleep(ctx, 5*time.Second) }
		w.Orphan(orphan("old", "web"))
		w.Update(pod("new", static("web")))
		w.Update(pod("other", static("db")))
		w.Orphan(orphan("older", "db")) // came too late to be waited for, and does not wait either
		pass(time.Minute)
		s.expect(t, `
			0s stop orphan default/web(old)
			0s sync other
			0s stop orphan default/db(older)
			5s sync new`)
	})
}

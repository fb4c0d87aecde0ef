package syncloop_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/syncloop"
)

// step is something that happens around a loop.
type step struct {
	Kind   string // see play
	Source int    // of two
	Pods   []int
	From   []string // the sources of the pods that the runtime holds
}

func steps() *rapid.Generator[[]step] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		return step{
			Kind:   rapid.SampledFrom([]string{"replace", "upsert", "remove", "runtime", "finish", "tick", "tick"}).Draw(t, "kind"),
			Source: rapid.IntRange(0, 1).Draw(t, "source"),
			Pods:   rapid.SliceOfNDistinct(rapid.IntRange(0, 4), 0, 4, rapid.ID).Draw(t, "pods"),
			From:   rapid.SliceOfN(rapid.SampledFrom([]string{"file", "api", "gone", ""}), 4, 4).Draw(t, "from"),
		}
	}), 1, 30)
}

// B005, B009: nothing is torn down or cleaned up that a source could still want, a worker knows or, for the cleaners, the
// runtime holds; everything else is in the end.
func TestNothingIsRemovedThatSomebodyCouldWant(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		script := steps().Draw(rt, "script")
		var problem string
		synctest.Test(t, func(t *testing.T) {
			w := &world{
				sources: []*fakeSource{newSource("file"), newSource("api")},
				runtime: &fakeRuntime{}, workers: newWorkers(), cleaner: &fakeCleaner{},
			}
			start(t, w.workers, syncloop.NewInbox(), w.sources, syncloop.WithHousekeeping(w.runtime.Pods, w.cleaner), syncloop.WithCleaning(0))
			for _, s := range script {
				w.play(s)
				w.check()
			}
			w.converge()
			problem = w.problem
		})
		if problem != "" {
			rt.Fatal(problem)
		}
	})
}

// world is a loop's surroundings, and what a test knows of them.
type world struct {
	sources []*fakeSource
	runtime *fakeRuntime
	workers *fakeWorkers
	cleaner *fakeCleaner

	wanted  [2]map[types.UID]bool
	synced  [2]bool
	problem string
}

func (w *world) play(s step) {
	var pods []*corev1.Pod
	for _, n := range s.Pods {
		pods = append(pods, newPod(fmt.Sprint(n), "v1"))
	}
	if s.Kind == "replace" || w.wanted[s.Source] == nil {
		w.wanted[s.Source] = map[types.UID]bool{}
	}
	for _, pod := range pods {
		switch s.Kind {
		case "replace", "upsert":
			w.wanted[s.Source][pod.UID] = true
		case "remove":
			delete(w.wanted[s.Source], pod.UID)
		case "finish":
			w.workers.finish(pod.UID)
		}
	}
	switch s.Kind {
	case "replace":
		w.synced[s.Source] = true
		w.sources[s.Source].replace(pods...)
	case "upsert":
		w.sources[s.Source].upsert(pods...)
	case "remove":
		w.sources[s.Source].remove(pods...)
	case "runtime":
		var held [][2]string
		for i, pod := range pods {
			held = append(held, [2]string{string(pod.UID), s.From[i]})
		}
		w.runtime.holds(held...)
	case "tick":
		w.cleaner.find("0", "1", "2", "3", "4")
		tick()
	}
	synctest.Wait()
}

// check judges what was removed in the last step.
func (w *world) check() {
	for _, told := range w.workers.take() {
		uid, orphan := strings.CutPrefix(told, "orphan ")
		if orphan && (w.anyWants(types.UID(uid)) || !w.couldTell(types.UID(uid))) {
			w.problem = fmt.Sprintf("%s is an orphan; wanted %v, synced %v", uid, w.wanted, w.synced)
		}
	}
	cleaned, _ := w.cleaner.take()
	for _, uid := range cleaned {
		if w.anyWants(uid) || w.workers.Known(uid) || w.holds(uid) || !w.synced[0] || !w.synced[1] {
			w.problem = fmt.Sprintf("%s is cleaned up; wanted %v, synced %v", uid, w.wanted, w.synced)
		}
	}
}

// converge lets all sources be synced and workers finish: what nobody wants has to go.
func (w *world) converge() {
	for i, s := range w.sources {
		w.play(step{Kind: "replace", Source: i})
		s.replace()
	}
	for range 2 { // the first hands over the orphans, the second cleans up after them
		w.play(step{Kind: "tick"})
		w.check()
		w.runtime.holds()
		w.play(step{Kind: "finish", Pods: []int{0, 1, 2, 3, 4}})
	}
	w.play(step{Kind: "tick"})
	if _, left := w.cleaner.take(); len(left) != 0 {
		w.problem = fmt.Sprintf("%v are left", left)
	}
}

func (w *world) anyWants(uid types.UID) bool { return w.wanted[0][uid] || w.wanted[1][uid] }

func (w *world) holds(uid types.UID) bool {
	pods, _ := w.runtime.Pods()
	return slices.ContainsFunc(pods, func(p *podmill.RuntimePod) bool { return p.UID == uid })
}

// couldTell reports whether every source that could want a pod of the runtime has told what it wants.
func (w *world) couldTell(uid types.UID) bool {
	pods, _ := w.runtime.Pods()
	for _, pod := range pods {
		if pod.UID != uid {
			continue
		}
		switch pod.Sandboxes[0].Annotations["kubernetes.io/config.source"] {
		case "file":
			return w.synced[0]
		case "api":
			return w.synced[1]
		}
	}
	return w.synced[0] && w.synced[1]
}

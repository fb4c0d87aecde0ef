package apiserver

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
)

func withSecrets(pod *corev1.Pod, names ...string) *corev1.Pod {
	for _, name := range names {
		pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	return pod
}

// However a source delivers, an object is watched exactly while a pod that may still start refers to it, and is not left in between (B076).
func TestObjectsAreWatchedWhileReferredTo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := map[string]int{}
		inUpdate, kept := false, map[string]bool{}
		u := newUsers(func(ref podmill.ObjectRef) { count[ref.Name]++ }, func(ref podmill.ObjectRef) {
			count[ref.Name]--
			if count[ref.Name] < 0 || inUpdate && kept[ref.Name] && count[ref.Name] == 0 {
				t.Fatalf("%s was left %d times too often", ref.Name, -count[ref.Name]+1)
			}
		})
		want := map[types.UID]*corev1.Pod{}
		for range rapid.IntRange(1, 20).Draw(t, "updates") {
			update := podmill.PodUpdate{Op: podmill.PodOp(rapid.IntRange(0, 2).Draw(t, "op"))}
			next := map[types.UID]*corev1.Pod{}
			if update.Op != podmill.ReplacePods {
				for uid, pod := range want {
					next[uid] = pod
				}
			}
			for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(0, 3), 0, 4, rapid.ID[int]).Draw(t, "pods") {
				pod := withSecrets(podmilltest.Pod(fmt.Sprint(n)), rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3).Draw(t, "secrets")...)
				if rapid.Bool().Draw(t, "over") {
					pod.Status.Phase = corev1.PodSucceeded
				}
				update.Pods = append(update.Pods, pod)
				delete(next, pod.UID)
				if update.Op != podmill.DeletePods {
					next[pod.UID] = pod
				}
			}
			before := referred(want)
			want = next
			after := referred(want)
			clear(kept)
			for name := range after {
				kept[name] = before[name]
			}
			inUpdate = true
			u.update(update)
			inUpdate = false
			for _, name := range []string{"a", "b", "c"} {
				if (count[name] > 0) != after[name] {
					t.Fatalf("%s has %d users, and is referred to: %v", name, count[name], after[name])
				}
			}
		}
		u.update(podmill.PodUpdate{Op: podmill.ReplacePods})
		for name, n := range count {
			if n != 0 {
				t.Fatalf("%s has %d users in the end", name, n)
			}
		}
	})
}

func referred(pods map[types.UID]*corev1.Pod) map[string]bool {
	names := map[string]bool{}
	for _, pod := range pods {
		for _, s := range pod.Spec.ImagePullSecrets {
			if pod.Status.Phase != corev1.PodSucceeded {
				names[s.Name] = true
			}
		}
	}
	return names
}

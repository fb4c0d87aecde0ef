package podmilltest

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// PodSourceEnv is a source to be tested, which wants no pods yet, and hands to change what it wants.
type PodSourceEnv struct {
	Source podmill.PodSource
	// Put makes the source want a pod, or changes the one of that name. The source may deliver it with another name, UID and
	// annotations; its labels and containers stay.
	Put func(t *testing.T, pod *corev1.Pod)
	// Remove makes the source not want the pod of that name.
	Remove func(t *testing.T, pod *corev1.Pod)
	// Patience is how long the source may take to notice; 20 seconds unless it is given.
	Patience time.Duration
}

// PodSourceTest holds a source to the contract of [podmill.PodSource]. It makes an environment for each of its subtests.
func PodSourceTest(t *testing.T, newEnv func(t *testing.T) PodSourceEnv) {
	for _, test := range []struct {
		name string
		run  func(k *sourceKit)
	}{
		{"TheFirstReplaceIsWhole", testSourceFirstReplaceIsWhole},
		{"AnEmptySetIsASet", testSourceAnEmptySetIsASet},
		{"ChangesFollow", testSourceChangesFollow},
		{"IdentityOutlivesARun", testSourceIdentityOutlivesARun},
		{"DeliveredPodsStayAsTheyAre", testSourceDeliveredPods},
	} {
		t.Run(test.name, func(t *testing.T) {
			k := &sourceKit{T: t, PodSourceEnv: newEnv(t)}
			if k.Patience == 0 {
				k.Patience = 20 * time.Second
			}
			if k.Source.Name() == "" {
				t.Error("the source has no name")
			}
			test.run(k)
		})
	}
}

type sourceKit struct {
	*testing.T
	PodSourceEnv
}

// labelOf is the label by which the kit knows its pods again.
const labelOf = "podmilltest"

func sourcePod(name, image string) *corev1.Pod {
	return Pod("default/"+name, Label(labelOf, name), Container("c", image, Pull(corev1.PullIfNotPresent)))
}

// listener is one Run of a source and what it delivered.
type listener struct {
	*sourceKit
	stop    func()
	calling atomic.Int32

	mu      sync.Mutex
	updates []podmill.PodUpdate
	copies  []podmill.PodUpdate // as they were when they came
	pods    map[types.UID]*corev1.Pod
	synced  bool
}

func (k *sourceKit) listen() *listener {
	l := &listener{sourceKit: k, pods: map[types.UID]*corev1.Pod{}}
	ctx, cancel := context.WithCancel(k.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := k.Source.Run(ctx, l.deliver); err != nil && ctx.Err() == nil {
			k.Errorf("Run: %v", err)
		}
	}()
	l.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(k.Patience):
			k.Errorf("Run goes on %v after its context has ended", k.Patience)
		}
	})
	k.Cleanup(l.stop)
	return l
}

func (l *listener) deliver(u podmill.PodUpdate) {
	if l.calling.Add(1) != 1 {
		l.Error("deliver is called while it runs")
	}
	defer l.calling.Add(-1)
	time.Sleep(5 * time.Millisecond) // a consumer may block for a moment, and one call at a time
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.synced && u.Op == podmill.DeletePods {
		l.Errorf("%v comes before the first %v", u.Op, podmill.ReplacePods)
	}
	if u.Op == podmill.ReplacePods {
		l.synced = true
		clear(l.pods)
	}
	kept := podmill.PodUpdate{Op: u.Op}
	for _, pod := range u.Pods {
		kept.Pods = append(kept.Pods, pod.DeepCopy())
		if pod.UID == "" || u.Op != podmill.DeletePods && (pod.Name == "" || pod.Namespace == "") {
			l.Errorf("%v of pod %s, want a namespace, a name and a UID", u.Op, podmill.RefOf(pod))
		}
		if u.Op == podmill.DeletePods {
			delete(l.pods, pod.UID)
		} else {
			l.pods[pod.UID] = pod
		}
	}
	l.updates, l.copies = append(l.updates, podmill.PodUpdate{Op: u.Op, Pods: slices.Clone(u.Pods)}), append(l.copies, kept)
}

// wants waits until the source wants these pods, by label and image, and returns their UIDs.
func (l *listener) wants(images map[string]string) map[string]types.UID {
	l.Helper()
	var uids map[string]types.UID
	start := time.Now()
	for {
		got := map[string]string{}
		uids = map[string]types.UID{}
		l.mu.Lock()
		synced := l.synced
		twice := false
		for uid, pod := range l.pods {
			name := pod.Labels[labelOf]
			_, known := got[name]
			twice = twice || known
			got[name], uids[name] = pod.Spec.Containers[0].Image, uid
		}
		l.mu.Unlock()
		if synced && !twice && gocmp.Equal(got, images) {
			return uids
		}
		if time.Since(start) > l.Patience {
			l.Fatalf("after %v the source wants %v, want %v (synced: %v, one pod under two UIDs: %v)", l.Patience, got, images, synced, twice)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func testSourceFirstReplaceIsWhole(k *sourceKit) {
	k.Put(k.T, sourcePod("a", "i:1"))
	k.Put(k.T, sourcePod("b", "i:1"))
	l := k.listen()
	l.wants(map[string]string{"a": "i:1", "b": "i:1"})
	l.mu.Lock()
	defer l.mu.Unlock()
	first := slices.IndexFunc(l.updates, func(u podmill.PodUpdate) bool { return u.Op == podmill.ReplacePods })
	if n := len(l.updates[first].Pods); n != 2 {
		k.Errorf("the first %v has %d pods, want the whole set of 2", podmill.ReplacePods, n)
	}
}

func testSourceAnEmptySetIsASet(k *sourceKit) {
	k.listen().wants(map[string]string{})
}

func testSourceChangesFollow(k *sourceKit) {
	l := k.listen()
	l.wants(map[string]string{})
	k.Put(k.T, sourcePod("a", "i:1"))
	l.wants(map[string]string{"a": "i:1"})
	k.Put(k.T, sourcePod("b", "i:1"))
	first := l.wants(map[string]string{"a": "i:1", "b": "i:1"})
	k.Put(k.T, sourcePod("a", "i:2"))
	l.wants(map[string]string{"a": "i:2", "b": "i:1"})
	k.Remove(k.T, sourcePod("a", "i:2"))
	second := l.wants(map[string]string{"b": "i:1"})
	if first["b"] != second["b"] {
		k.Errorf("the UID of a pod that did not change went from %s to %s", first["b"], second["b"])
	}
}

func testSourceIdentityOutlivesARun(k *sourceKit) {
	k.Put(k.T, sourcePod("a", "i:1"))
	k.Put(k.T, sourcePod("b", "i:1"))
	l := k.listen()
	before := l.wants(map[string]string{"a": "i:1", "b": "i:1"})
	l.stop()
	k.Remove(k.T, sourcePod("b", "i:1"))
	after := k.listen().wants(map[string]string{"a": "i:1"})
	if before["a"] != after["a"] {
		k.Errorf("the UID of a pod that did not change was %s and is %s in the next run", before["a"], after["a"])
	}
}

func testSourceDeliveredPods(k *sourceKit) {
	k.Put(k.T, sourcePod("a", "i:1"))
	l := k.listen()
	l.wants(map[string]string{"a": "i:1"})
	k.Put(k.T, sourcePod("a", "i:2"))
	l.wants(map[string]string{"a": "i:2"})
	k.Remove(k.T, sourcePod("a", "i:2"))
	l.wants(map[string]string{})
	l.stop()
	n := len(l.updates)
	if diff := gocmp.Diff(l.copies, l.updates); diff != "" {
		k.Errorf("pods changed after they were delivered (-then +now):\n%s", diff)
	}
	k.Put(k.T, sourcePod("b", "i:1"))
	if len(l.updates) != n {
		k.Error("something was delivered after Run has returned")
	}
}

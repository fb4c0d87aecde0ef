package syncloop

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/podmill/podmill"
)

func testPod(uid, image string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
	}
}

func newSet(sources ...string) merged {
	m := make(merged, len(sources))
	for i, s := range sources {
		m[i] = wanted{source: s, pods: map[types.UID]*corev1.Pod{}}
	}
	return m
}

func TestSame(t *testing.T) {
	base := testPod("a", "v1")
	base.Labels = map[string]string{"app": "web"}
	base.Annotations = map[string]string{"note": "x", podmill.AnnotationConfigSeen: "2026-01-01T00:00:00Z"}
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		same   bool
	}{
		"nothing":              {func(*corev1.Pod) {}, true},
		"status":               {func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, true},
		"resource version":     {func(p *corev1.Pod) { p.ResourceVersion = "2" }, true},
		"when it was seen":     {func(p *corev1.Pod) { p.Annotations[podmill.AnnotationConfigSeen] = "2026-01-02T00:00:00Z" }, true},
		"when, not any more":   {func(p *corev1.Pod) { delete(p.Annotations, podmill.AnnotationConfigSeen) }, true},
		"image":                {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "v2" }, false},
		"label":                {func(p *corev1.Pod) { p.Labels["app"] = "db" }, false},
		"annotation":           {func(p *corev1.Pod) { p.Annotations["note"] = "y" }, false},
		"annotation gone":      {func(p *corev1.Pod) { delete(p.Annotations, "note") }, false},
		"one more annotation":  {func(p *corev1.Pod) { p.Annotations["more"] = "" }, false},
		"another annotation":   {func(p *corev1.Pod) { delete(p.Annotations, "note"); p.Annotations["more"] = "x" }, false},
		"deletion":             {func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, false},
		"grace of the removal": {func(p *corev1.Pod) { p.DeletionGracePeriodSeconds = new(int64) }, false},
	} {
		other := base.DeepCopy()
		test.change(other)
		if same(base, other) != test.same || same(other, base) != test.same {
			t.Errorf("%s: want same to be %v", name, test.same)
		}
	}
	one, other := testPod("a", "v1"), testPod("a", "v2")
	one.ResourceVersion, other.ResourceVersion = "7", "7"
	if !same(one, other) {
		t.Error("pods of one resource version differ")
	}
}

func TestAReplacementThatChangesNothingYieldsNothing(t *testing.T) {
	m := newSet("file")
	pods := []*corev1.Pod{testPod("a", "v1"), testPod("b", "v1")}
	m.apply(0, podmill.PodUpdate{Pods: pods})
	if out := m.apply(0, podmill.PodUpdate{Pods: pods}); len(out.changes) != 0 {
		t.Errorf("changes: %v", out.changes)
	}
	out := m.apply(0, podmill.PodUpdate{Pods: []*corev1.Pod{pods[0].DeepCopy(), pods[1].DeepCopy()}})
	for _, c := range out.changes {
		if !c.same {
			t.Errorf("change of %s", c.uid)
		}
	}
}

func TestPodsWithoutAUIDAreCountedOut(t *testing.T) {
	m := newSet("file")
	out := m.apply(0, podmill.PodUpdate{Pods: []*corev1.Pod{nil, testPod("", "v1"), testPod("a", "v1")}})
	if out.invalid != 2 || len(out.changes) != 1 {
		t.Errorf("outcome: %+v", out)
	}
}

// Whatever sources deliver, who follows the changes has what a full look at all sources gives, each change is one,
// and none comes that makes no difference.
func TestMergeAgreesWithAFullLook(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"file", "http", "api"}
		m := newSet(names...)
		truth := make([]map[types.UID]*corev1.Pod, len(names)) // by source; nil before it is synced
		view := map[types.UID]*corev1.Pod{}                    // of who follows the changes
		newest := map[types.UID]*corev1.Pod{}

		t.Repeat(map[string]func(*rapid.T){
			"update": func(t *rapid.T) {
				source := rapid.IntRange(0, len(names)-1).Draw(t, "source")
				op := rapid.SampledFrom([]podmill.PodOp{podmill.ReplacePods, podmill.UpsertPods, podmill.DeletePods}).Draw(t, "op")
				var pods []*corev1.Pod
				for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(0, 5), 0, 6, rapid.ID).Draw(t, "pods") {
					pods = append(pods, testPod(fmt.Sprint(n), fmt.Sprint("v", rapid.IntRange(1, 2).Draw(t, "version"))))
				}
				before := fullLook(truth)
				if op == podmill.ReplacePods {
					truth[source] = map[types.UID]*corev1.Pod{}
				}
				for _, pod := range pods {
					if op == podmill.DeletePods {
						delete(truth[source], pod.UID)
						continue
					}
					if truth[source] == nil {
						truth[source] = map[types.UID]*corev1.Pod{}
					}
					truth[source][pod.UID] = pod
				}

				out := m.apply(source, podmill.PodUpdate{Op: op, Pods: pods})
				told := map[types.UID]bool{}
				for _, c := range out.changes {
					if told[c.uid] {
						t.Fatalf("two changes of %s", c.uid)
					}
					told[c.uid] = true
					follow(t, before, view, newest, c)
				}
				if d := cmp.Diff(images(fullLook(truth)), images(view)); d != "" {
					t.Fatalf("view (-want +got):\n%s", d)
				}
				for uid, pod := range fullLook(truth) {
					if newest[uid] != pod {
						t.Fatalf("an old version of %s is there", uid)
					}
				}
			},
		})
	})
}

// follow does what the loop does with a change.
func follow(t *rapid.T, before, view, newest map[types.UID]*corev1.Pod, c change) {
	if c.pod == nil {
		if before[c.uid] == nil {
			t.Fatalf("%s is taken away, and was not there", c.uid)
		}
		delete(view, c.uid)
		delete(newest, c.uid)
		return
	}
	newest[c.uid] = c.pod
	if c.same {
		return
	}
	if was := before[c.uid]; was != nil && was.Spec.Containers[0].Image == c.pod.Spec.Containers[0].Image {
		t.Fatalf("change of %s to what it was", c.uid)
	}
	view[c.uid] = c.pod
}

// images is all by which the pods of this test differ.
func images(pods map[types.UID]*corev1.Pod) map[types.UID]string {
	images := map[types.UID]string{}
	for uid, pod := range pods {
		images[uid] = pod.Spec.Containers[0].Image
	}
	return images
}

// fullLook merges in the simplest way.
func fullLook(sources []map[types.UID]*corev1.Pod) map[types.UID]*corev1.Pod {
	all := map[types.UID]*corev1.Pod{}
	for _, pods := range sources {
		for uid, pod := range pods {
			if all[uid] == nil {
				all[uid] = pod
			}
		}
	}
	return all
}

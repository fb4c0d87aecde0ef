package admission_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/admission"
	"github.com/podmill/podmill/podmilltest"
)

// of makes a pod of a class that asks for some CPU and memory; a pod without either is BestEffort.
func of(name, cpu, memory string, guaranteed bool) *corev1.Pod {
	pod := podmilltest.Pod("x/"+name, podmilltest.Container("c", "i"))
	list := corev1.ResourceList{}
	for key, q := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory} {
		if q != "" {
			list[key] = resource.MustParse(q)
		}
	}
	pod.Spec.Containers[0].Resources.Requests = list
	if guaranteed {
		pod.Spec.Containers[0].Resources.Limits = list
	}
	return pod
}

func static(pod *corev1.Pod) *corev1.Pod {
	pod.Annotations = map[string]string{podmill.AnnotationConfigSource: "file"}
	return pod
}

func priority(pod *corev1.Pod, p int32) *corev1.Pod {
	pod.Spec.Priority = &p
	return pod
}

func TestPreempt(t *testing.T) {
	burstable := func(name, cpu string) *corev1.Pod { return of(name, cpu, "", false) }
	guaranteed := func(name, cpu string) *corev1.Pod { return of(name, cpu, "1Gi", true) }
	const nobody = "UnexpectedAdmissionError: Unexpected error while attempting to recover from admission failure: preemption: " +
		"error finding a set of pods to preempt: no set of running pods found to reclaim resources: "
	for name, tc := range map[string]struct {
		others []*corev1.Pod
		pod    *corev1.Pod
		want   []string
		reason string
	}{
		"what fits needs nobody's end":      {[]*corev1.Pod{burstable("a", "500m")}, static(burstable("p", "500m")), nil, ""},
		"a pod that is not critical":        {[]*corev1.Pod{burstable("a", "1")}, priority(burstable("p", "1"), 1_999_999_999), nil, "OutOfcpu: Node didn't have enough resource: cpu, requested: 1000, used: 1000, capacity: 1000"},
		"a static pod":                      {[]*corev1.Pod{burstable("a", "1")}, static(burstable("p", "1")), []string{"a"}, ""},
		"a pod of the system's priority":    {[]*corev1.Pod{burstable("a", "1")}, priority(burstable("p", "1"), 2_000_000_000), []string{"a"}, ""},
		"critical pods stay":                {[]*corev1.Pod{static(burstable("a", "1"))}, static(burstable("p", "1")), nil, nobody + "[(res: cpu, q: 1000), ]"},
		"critical pods of a lower priority": {[]*corev1.Pod{priority(burstable("a", "1"), 2_000_000_000)}, priority(burstable("p", "1"), 2_000_001_000), []string{"a"}, ""},
		"critical pods of a higher one":     {[]*corev1.Pod{priority(burstable("a", "1"), 2_000_001_000)}, priority(burstable("p", "1"), 2_000_000_000), nil, nobody + "[(res: cpu, q: 1000), ]"},
		"one that has enough, and no more": {
			[]*corev1.Pod{burstable("a", "100m"), burstable("b", "600m"), burstable("c", "300m")}, static(burstable("p", "250m")), []string{"c"}, ""},
		"few": {[]*corev1.Pod{burstable("a", "100m"), burstable("b", "200m"), burstable("c", "700m")}, static(burstable("p", "800m")), []string{"c", "a"}, ""},
		"Burstable before Guaranteed": {
			[]*corev1.Pod{guaranteed("a", "500m"), burstable("b", "500m")}, static(burstable("p", "500m")), []string{"b"}, ""},
		"Guaranteed for what the others do not have": {
			[]*corev1.Pod{guaranteed("a", "500m"), burstable("b", "500m")}, static(burstable("p", "1")), []string{"a", "b"}, ""},
		"BestEffort for a place": {
			[]*corev1.Pod{guaranteed("a", "100m"), burstable("b", "100m"), of("c", "", "", false)}, static(burstable("p", "100m")), []string{"c"}, ""},
		"of the same size, the one with less memory": {
			[]*corev1.Pod{of("a", "500m", "2Gi", false), of("b", "500m", "1Gi", false)}, static(burstable("p", "500m")), []string{"b"}, ""},
		"a pod that can never run here ends nobody": {[]*corev1.Pod{burstable("a", "1")}, func() *corev1.Pod {
			pod := static(burstable("p", "1"))
			pod.Spec.NodeSelector = map[string]string{"disk": "ssd"}
			return pod
		}(), nil, "NodeAffinity: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"},
		"more than there is": {[]*corev1.Pod{burstable("a", "1")}, static(burstable("p", "3")), nil, nobody + "[(res: cpu, q: 2000), ]"},
	} {
		t.Run(name, func(t *testing.T) {
			n := admission.Node{Name: "n", OS: "linux", Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourcePods: resource.MustParse("3")}}
			victims, rejection := admission.Preempt(&n, tc.others, tc.pod)
			var got []string
			for _, v := range victims {
				got = append(got, v.Name)
			}
			reason := ""
			if rejection != nil {
				reason = rejection.String()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || reason != tc.reason {
				t.Errorf("rejection %q, want %q; victims (-want +got):\n%s", reason, tc.reason, diff)
			}
		})
	}
}

// Whatever there is on a node: who is preempted makes room for the pod, and has to yield to it; and where a pod is rejected nobody ends.
func TestPreemptionMakesRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) *corev1.Pod {
			size := func(unit string) string { return fmt.Sprint(rapid.IntRange(0, 5).Draw(t, name+unit)*100) + unit }
			pod := of(name, size("m"), size("Mi"), rapid.Bool().Draw(t, name+" guaranteed"))
			switch rapid.IntRange(0, 3).Draw(t, name+" is") {
			case 0:
				return static(pod)
			case 1:
				return priority(pod, rapid.SampledFrom([]int32{0, 2_000_000_000, 2_000_001_000}).Draw(t, name+" priority"))
			}
			return pod
		}
		var others []*corev1.Pod
		for i := range rapid.IntRange(0, 6).Draw(t, "others") {
			others = append(others, draw(fmt.Sprint("o", i)))
		}
		n := admission.Node{Name: "n", OS: "linux", Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1000Mi"), corev1.ResourcePods: resource.MustParse("5"),
		}}
		pod := draw("p")
		victims, rejection := admission.Preempt(&n, others, pod)
		if rejection != nil {
			if len(victims) > 0 {
				t.Fatalf("%v, and yet %d pods end", rejection, len(victims))
			}
			return
		}
		left := slices.DeleteFunc(slices.Clone(others), func(o *corev1.Pod) bool { return slices.Contains(victims, o) })
		if len(left)+len(victims) != len(others) {
			t.Fatalf("%d victims of %d pods, and %d are left", len(victims), len(others), len(left))
		}
		if r := admission.Check(&n, left, pod); r != nil {
			t.Fatalf("%d pods end, and yet: %v", len(victims), r)
		}
		if admission.Check(&n, others, pod) == nil && len(victims) > 0 {
			t.Fatalf("%d pods end for one that fits", len(victims))
		}
	})
}

// B083: a critical pod runs at once, whatever becomes of those that end for it; they count no more, and do not get back in.
func TestACriticalPodDoesNotWaitForItsVictims(t *testing.T) {
	r := newRig("1")
	victim := asking("victim", "1")
	r.Gate.Update(victim)
	r.Gate.Update(static(asking("critical", "500m")))
	r.Gate.Update(asking("small", "500m"))
	r.Gate.Update(victim.DeepCopy()) // the API has yet to hear of its end
	r.Gate.Update(asking("more", "1m"))
	r.want(t, "update victim", "preempt victim", "update critical", "update small", "update victim", "reject more OutOfcpu")
}

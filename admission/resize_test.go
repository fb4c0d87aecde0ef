package admission_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podmill/podmill/admission"
	"github.com/podmill/podmill/podmilltest"
)

func TestCheckResize(t *testing.T) {
	n := node()
	n.Allocatable[corev1.ResourceMemory] = resource.MustParse("1Gi")
	memory := func(pod *corev1.Pod, q string) *corev1.Pod {
		pod.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse(q)
		return pod
	}
	others := []*corev1.Pod{asking("other", "2"), asking("web", "1")}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"it fits":                {asking("web", "1500m"), "<nil>"},
		"others have it":         {asking("web", "1501m"), "Deferred: Node didn't have enough resource: cpu, requested: 1501, used: 2000, capacity: 3500"},
		"nobody will have it":    {asking("web", "3501m"), "Infeasible: Node didn't have enough capacity: cpu, requested: 3501, capacity: 3500"},
		"memory is named first":  {memory(asking("web", "9"), "2Gi"), "Infeasible: Node didn't have enough capacity: memory, requested: 2147483648, capacity: 1073741824"},
		"no other check is made": {asking("web", "1", func(pod *corev1.Pod) { pod.Spec.NodeName = "another" }), "<nil>"},
	} {
		got := "<nil>"
		if r := admission.CheckResize(&n, others, tc.pod); r != nil {
			got = r.String()
		}
		if got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// resize asks for other CPU, and says what came of it.
func (r *rig) resize(has, wants *corev1.Pod) {
	reason, _ := r.Gate.Resize(has, wants)
	r.say(fmt.Sprint("resize ", wants.Name, " ", reason))
}

// A pod counts with what it has until there is room for what it wants, and of those that wait the most important one is first.
func TestResizesShareTheNode(t *testing.T) {
	r := newRig("4")
	important := func(pod *corev1.Pod) { pod.Spec.Priority = new(int32); *pod.Spec.Priority = 7 }
	one, two, leaves := asking("one", "1"), asking("two", "1", important), asking("leaves", "2")
	for _, pod := range []*corev1.Pod{one, two, leaves} {
		r.Gate.Update(pod)
	}
	r.want(t, "update one", "update two", "update leaves")
	oneWants, twoWants := asking("one", "3"), asking("two", "3", important)
	r.Gate.Update(oneWants)
	r.resize(one, oneWants)
	r.resize(two, twoWants)
	r.resize(two, asking("two", "5", important))
	r.resize(two, twoWants)
	r.want(t, "update one", "resize one Deferred", "resize two Deferred", "resize two Infeasible", "resize two Deferred")
	r.Gate.Freed()
	r.want(t)
	r.Gate.Remove(leaves.UID)
	r.Gate.Freed() // it has not gone yet
	r.want(t, "remove")
	r.known[leaves.UID] = false
	r.Gate.Freed()
	r.want(t, "retry two")
	r.resize(two, twoWants)
	r.Gate.Update(asking("late", "1m"))
	r.want(t, "resize two ", "reject late OutOfcpu")
	r.resize(twoWants, asking("two", "1")) // which makes room for the other one
	r.want(t, "retry one", "resize two ")
	r.resize(one, oneWants)
	r.want(t, "resize one ")
}

// A resize that waits for room and is taken back is not given later: nobody would have the room.
func TestAResizeThatIsTakenBack(t *testing.T) {
	r := newRig("4")
	small := asking("web", "1")
	r.Gate.Update(small)
	r.Gate.Update(asking("other", "3"))
	large := asking("web", "3")
	r.Gate.Update(large)
	r.resize(small, large)
	r.Gate.Update(small)
	r.Gate.Remove(podmilltest.Pod("x/other").UID)
	r.known[podmilltest.Pod("x/other").UID] = false
	r.Gate.Freed()
	r.Gate.Update(asking("third", "3"))
	r.want(t, "update web", "update other", "update web", "resize web Deferred", "update web", "remove", "update third")
}

// B016: after a restart a pod that runs counts with what it was allocated, which its status says, whatever its spec asks for.
func TestARestartCountsWhatWasAllocated(t *testing.T) {
	r := newRig("4")
	pod := asking("web", "4")
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", AllocatedResources: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}
	r.Gate.Update(pod)
	r.Gate.Update(asking("other", "3"))
	has := asking("web", "1")
	r.resize(has, pod)
	r.want(t, "update web", "update other", "resize web Deferred")
	r.Gate.Remove(podmilltest.Pod("x/web").UID)
	r.known[pod.UID] = false
	r.Gate.Freed()
	r.want(t, "remove") // nobody is left that waits
}

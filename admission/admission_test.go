package admission_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/admission"
	"github.com/podmill/podmill/podmilltest"
)

func asking(name, cpu string, opts ...podmilltest.PodOption) *corev1.Pod {
	pod := podmilltest.Pod("x/"+name, append(opts, podmilltest.Container("c", "i"))...)
	if cpu != "" {
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
	return pod
}

func node() admission.Node {
	return admission.Node{
		Name: "n", OS: "linux", Labels: map[string]string{"disk": "ssd", "cores": "8"},
		Taints: []corev1.Taint{{Key: "k", Value: "v", Effect: corev1.TaintEffectNoExecute}, {Key: "s", Effect: corev1.TaintEffectNoSchedule}},
		Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("3500m"), corev1.ResourcePods: resource.MustParse("3"), "example.com/gpu": resource.MustParse("1"),
		},
	}
}

func tolerant(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	return pod
}

func TestCheck(t *testing.T) {
	used := []*corev1.Pod{asking("used", "759m")}
	over := asking("over", "3")
	over.Status.Phase = corev1.PodSucceeded
	port := func(ip string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80, HostIP: ip}}
		}
	}
	term := func(key string, op corev1.NodeSelectorOperator, values ...string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: op, Values: values}}}},
			}}}
		}
	}
	requests := func(name corev1.ResourceName, quantity string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{name: resource.MustParse(quantity)}
		}
	}
	listening := asking("listening", "")
	port("10.0.0.1")(listening)
	for name, tc := range map[string]struct {
		others []*corev1.Pod
		change func(*corev1.Pod)
		want   string // reason: message
	}{
		"it fits":            {used, requests("cpu", "2741m"), ""},
		"too much CPU":       {used, requests("cpu", "2742m"), "OutOfcpu: Node didn't have enough resource: cpu, requested: 2742, used: 759, capacity: 3500"},
		"others are over":    {[]*corev1.Pod{over, over}, requests("cpu", "3500m"), ""},
		"it is known itself": {[]*corev1.Pod{asking("new", "3")}, requests("cpu", "3"), ""},
		"too many pods": {[]*corev1.Pod{asking("a", ""), asking("b", ""), asking("c", "")}, nil,
			"OutOfpods: Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3"},
		"a device":                             {nil, requests("example.com/gpu", "2"), "OutOfexample.com/gpu: Node didn't have enough resource: example.com/gpu, requested: 2, used: 0, capacity: 1"},
		"a device that the node does not know": {nil, requests("example.com/other", "2"), ""},
		"a label":                              {nil, func(pod *corev1.Pod) { pod.Spec.NodeSelector = map[string]string{"disk": "ssd"} }, ""},
		"another label": {nil, func(pod *corev1.Pod) { pod.Spec.NodeSelector = map[string]string{"disk": "hdd"} },
			"NodeAffinity: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"},
		"affinity":                  {nil, term("cores", corev1.NodeSelectorOpGt, "4"), ""},
		"no affinity":               {nil, term("cores", corev1.NodeSelectorOpGt, "16"), "NodeAffinity: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"},
		"an affinity that is wrong": {nil, term("cores", "Near", "16"), "NodeAffinity: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"},
		"another node":              {nil, func(pod *corev1.Pod) { pod.Spec.NodeName = "m" }, "NodeName: Predicate NodeName failed: node(s) didn't match the requested node name"},
		"a port that is taken":      {[]*corev1.Pod{listening}, port(""), "NodePorts: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"},
		"a port of another address": {[]*corev1.Pod{listening}, port("10.0.0.2"), ""},
		"another system":            {nil, func(pod *corev1.Pod) { pod.Spec.OS = &corev1.PodOS{Name: corev1.Windows} }, "PodOSNotSupported: Failed to admit pod as the OS field doesn't match node OS"},
		"another system, by its label": {nil, func(pod *corev1.Pod) { pod.Spec.NodeSelector = map[string]string{corev1.LabelOSStable: "windows"} },
			"PodOSSelectorNodeLabelDoesNotMatch: Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"},
	} {
		t.Run(name, func(t *testing.T) {
			pod, n := tolerant(asking("new", "")), node()
			if tc.change != nil {
				tc.change(pod)
			}
			got := ""
			if r := admission.Check(&n, tc.others, pod); r != nil {
				got = r.String()
			}
			if got != tc.want {
				t.Errorf("rejection %q, want %q", got, tc.want)
			}
		})
	}
}

// B090: a taint that evicts rejects a pod of the API which does not tolerate it, and no static pod; one that only keeps the scheduler away rejects none.
func TestTaints(t *testing.T) {
	for _, effect := range []corev1.TaintEffect{corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule} {
		for _, source := range []string{"api", "file"} {
			n := node()
			n.Taints = []corev1.Taint{{Key: "k", Value: "v", Effect: effect}}
			pod := asking("p", "", podmilltest.Annotation(podmill.AnnotationConfigSource, source))
			rejected := admission.Check(&n, nil, pod) != nil
			if want := effect == corev1.TaintEffectNoExecute && source == "api"; rejected != want {
				t.Errorf("%s pod before %s: rejected %v, want %v", source, effect, rejected, want)
			}
			pod.Spec.Tolerations = []corev1.Toleration{{Key: "k", Value: "v"}}
			if r := admission.Check(&n, nil, pod); r != nil {
				t.Errorf("a pod that tolerates it is rejected: %v", r)
			}
		}
	}
}

// rig is a gate, the workers behind it and what it says.
type rig struct {
	*admission.Gate
	said     []string
	known    map[types.UID]bool
	statuses map[types.UID]corev1.PodStatus
}

func (r *rig) Update(pod *corev1.Pod)     { r.known[pod.UID] = true; r.say("update " + pod.Name) }
func (r *rig) Remove(pod types.UID)       { r.say("remove") }
func (r *rig) Sync(types.UID)             {}
func (r *rig) Orphan(*podmill.RuntimePod) {}
func (r *rig) Leftover(types.UID)         {}
func (r *rig) Known(pod types.UID) bool   { return r.known[pod] }
func (r *rig) say(what string)            { r.said = append(r.said, what) }
func (r *rig) want(t *testing.T, all ...string) {
	t.Helper()
	if diff := cmp.Diff(all, r.said); diff != "" {
		t.Errorf("said (-want +got):\n%s", diff)
	}
	r.said = nil
}

func newRig(cpu string) *rig {
	r := &rig{known: map[types.UID]bool{}, statuses: map[types.UID]corev1.PodStatus{}}
	r.Gate = admission.NewGate(r, admission.Surroundings{
		Node: func() admission.Node {
			return admission.Node{Name: "n", OS: "linux", Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
		},
		Status: func(pod types.UID) (corev1.PodStatus, bool) { s, ok := r.statuses[pod]; return s, ok },
		Reject: func(pod *corev1.Pod, rejection *admission.Rejection) {
			r.say(fmt.Sprint("reject ", pod.Name, " ", rejection.Reason))
		},
		Preempt: func(victim *corev1.Pod) { r.say("preempt " + victim.Name) },
		Retry: func(pod types.UID) {
			for _, name := range []string{"one", "two", "web"} {
				if podmilltest.Pod("x/"+name).UID == pod {
					r.say("retry " + name)
				}
			}
		},
		Finish: func(pod *corev1.Pod) { r.say("finish " + pod.Name) },
	})
	return r
}

// B023: what was rejected takes nothing from those that come after it, and stays rejected.
func TestARejectedPodDoesNotCount(t *testing.T) {
	r := newRig("3500m")
	r.Gate.Update(asking("used", "759m"))
	huge := asking("huge", "1000000000000000m")
	r.Gate.Update(huge)
	r.Gate.Update(huge.DeepCopy()) // the API still says Pending
	r.Gate.Update(asking("small", "20m"))
	r.want(t, "update used", "reject huge OutOfcpu", "update small")
	huge.DeletionTimestamp = podmilltest.Pod("x", podmilltest.Deleted(0)).DeletionTimestamp
	r.Gate.Update(huge)
	r.want(t, "finish huge")
}

// B016, and the variant of B023: after a restart what is over is not looked at and does not count, and what runs was admitted before.
func TestARestartAdmitsNothingAnew(t *testing.T) {
	r := newRig("1")
	over, runs := asking("over", "4"), asking("runs", "1")
	over.Status.Phase, runs.Status.Phase = corev1.PodSucceeded, corev1.PodRunning
	r.Gate.Update(over)
	r.Gate.Update(runs)
	r.statuses[over.UID] = over.Status
	r.Gate.Update(asking("more", "1m"))
	r.want(t, "update over", "update runs", "reject more OutOfcpu")
}

// A pod counts until nothing of it can run: until its status is final, or the workers have finished with it.
func TestAPodCountsUntilItIsOver(t *testing.T) {
	r := newRig("1")
	first := asking("first", "1")
	r.Gate.Update(first)
	r.Gate.Remove(first.UID)
	r.Gate.Update(asking("early", "1"))
	r.known[first.UID] = false
	second := asking("second", "1")
	r.Gate.Update(second)
	r.statuses[second.UID] = corev1.PodStatus{Phase: corev1.PodFailed}
	r.Gate.Update(asking("third", "1"))
	r.want(t, "update first", "remove", "reject early OutOfcpu", "update second", "update third")
}

func ExampleCheck() {
	n := admission.Node{Name: "n", OS: "linux", Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}
	rejection := admission.Check(&n, []*corev1.Pod{asking("a", "800m")}, asking("b", "300m"))
	fmt.Println(rejection.Reason)
	fmt.Println(rejection.Message)
	// Output:
	// OutOfcpu
	// Node didn't have enough resource: cpu, requested: 300, used: 800, capacity: 1000
}

// A node that goes down takes no pods, critical ones neither, and nobody has to end for one.
func TestANodeThatGoesDown(t *testing.T) {
	down := node()
	down.ShuttingDown = true
	critical := tolerant(asking("critical", "3"))
	priority := int32(2_000_001_000)
	critical.Spec.Priority = &priority
	victims, rejection := admission.Preempt(&down, []*corev1.Pod{asking("other", "3")}, critical)
	if len(victims) > 0 || rejection == nil || rejection.String() != "NodeShutdown: Pod was rejected as the node is shutting down." {
		t.Errorf("victims %v, rejection %v", victims, rejection)
	}
	if r := admission.Check(&down, nil, tolerant(asking("pod", ""))); r == nil || r.Reason != "NodeShutdown" {
		t.Errorf("rejection %v", r)
	}
}

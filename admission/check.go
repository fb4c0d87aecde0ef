package admission

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podmill/podmill/internal/lifecycle"
	"github.com/podmill/podmill/internal/resources"
)

// Node is what pods are measured against.
type Node struct {
	Name        string
	Labels      map[string]string
	Taints      []corev1.Taint
	Allocatable corev1.ResourceList // with the number of pods; what is not in it is not bounded
	OS          string              // as in GOOS
	// ShuttingDown says that the machine goes down: no pod is taken any more, a critical one neither.
	ShuttingDown bool
}

// Rejection is why a pod cannot run, in the words of a pod's status.
type Rejection struct {
	Reason  string
	Message string
}

// String returns both.
func (r *Rejection) String() string { return r.Reason + ": " + r.Message }

// check is one thing that a pod is looked at for.
type check func(*Node, []*corev1.Pod, *corev1.Pod) *Rejection

// Check returns why a pod cannot run on the node beside others, nil if it can. Others that are over do not count, nor does the pod itself.
func Check(node *Node, others []*corev1.Pod, pod *corev1.Pod) *Rejection {
	return first(node, beside(others, pod), pod, checkShutdown, checkOS, checkResources, checkAffinity, checkName, checkPorts, checkTaints)
}

// first returns the first rejection.
func first(node *Node, others []*corev1.Pod, pod *corev1.Pod, checks ...check) *Rejection {
	for _, check := range checks {
		if r := check(node, others, pod); r != nil {
			return r
		}
	}
	return nil
}

// beside returns those of others that count beside a pod.
func beside(others []*corev1.Pod, pod *corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(others), func(o *corev1.Pod) bool { return over(o) || o.UID == pod.UID })
}

// over reports whether nothing of the pod runs any more.
func over(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// checkShutdown rejects every pod of a node that goes down (KEP-2000).
func checkShutdown(node *Node, _ []*corev1.Pod, _ *corev1.Pod) *Rejection {
	if node.ShuttingDown {
		return &Rejection{"NodeShutdown", "Pod was rejected as the node is shutting down."}
	}
	return nil
}

func checkOS(node *Node, _ []*corev1.Pod, pod *corev1.Pod) *Rejection {
	if want, ok := pod.Spec.NodeSelector[corev1.LabelOSStable]; ok && want != node.OS {
		return &Rejection{"PodOSSelectorNodeLabelDoesNotMatch", "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"}
	}
	if pod.Spec.OS != nil && string(pod.Spec.OS.Name) != node.OS {
		return &Rejection{"PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"}
	}
	return nil
}

func checkResources(node *Node, others []*corev1.Pod, pod *corev1.Pod) *Rejection {
	lacking := shortages(node, others, pod)
	if len(lacking) == 0 {
		return nil
	}
	return lacking[0].rejection()
}

// shortage is a resource of which a node has less left than a pod asks for.
type shortage struct {
	name                      corev1.ResourceName
	requested, used, capacity resource.Quantity
}

// shortages returns of which resources there is too little, the number of pods first. A pod that asks for nothing gets it from a node that has too little as well, and
// an extended resource that the node does not know is a device plugin's, which may not have said so yet.
func shortages(node *Node, others []*corev1.Pod, pod *corev1.Pod) []shortage {
	requests := resources.Requests(pod)
	names := slices.Sorted(maps.Keys(requests))
	var lacking []shortage
	for _, name := range append([]corev1.ResourceName{corev1.ResourcePods}, names...) {
		capacity, bounded := node.Allocatable[name]
		s := shortage{name: name, requested: request(pod, name), capacity: capacity}
		if !bounded || s.requested.IsZero() {
			continue
		}
		for _, other := range others {
			s.used.Add(request(other, name))
		}
		if missing := s.missing(); missing.Sign() > 0 {
			lacking = append(lacking, s)
		}
	}
	return lacking
}

// request is what a pod asks for of a resource. Each is one pod.
func request(pod *corev1.Pod, name corev1.ResourceName) resource.Quantity {
	if name == corev1.ResourcePods {
		return *resource.NewQuantity(1, resource.DecimalSI)
	}
	return resources.Requests(pod)[name]
}

// missing is how much more there would have to be.
func (s *shortage) missing() resource.Quantity {
	missing := s.requested.DeepCopy()
	missing.Add(s.used)
	missing.Sub(s.capacity)
	return missing
}

func (s *shortage) rejection() *Rejection {
	return &Rejection{"OutOf" + string(s.name), fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d",
		s.name, s.amount(s.requested), s.amount(s.used), s.amount(s.capacity))}
}

// amount is a quantity as messages have it: of CPU in thousandths.
func (s *shortage) amount(q resource.Quantity) int64 {
	if s.name == corev1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

func checkName(node *Node, _ []*corev1.Pod, pod *corev1.Pod) *Rejection {
	if pod.Spec.NodeName != "" && pod.Spec.NodeName != node.Name {
		return failed("NodeName", "node(s) didn't match the requested node name")
	}
	return nil
}

func failed(predicate, description string) *Rejection {
	return &Rejection{predicate, "Predicate " + predicate + " failed: " + description}
}

// port is a port of the host that a pod takes.
type port struct {
	ip       string
	protocol corev1.Protocol
	number   int32
}

func checkPorts(_ *Node, others []*corev1.Pod, pod *corev1.Pod) *Rejection {
	wanted := portsOf(pod)
	if len(wanted) == 0 {
		return nil
	}
	for _, other := range others {
		for _, taken := range portsOf(other) {
			if slices.ContainsFunc(wanted, taken.conflicts) {
				return failed("NodePorts", "node(s) didn't have free ports for the requested pod ports")
			}
		}
	}
	return nil
}

// portsOf returns the ports of containers that run side by side.
func portsOf(pod *corev1.Pod) []port {
	var all []port
	for c, kind := range lifecycle.Containers(pod) {
		for i := range c.Ports {
			p := &c.Ports[i]
			if p.HostPort == 0 || kind == lifecycle.Init {
				continue
			}
			one := port{p.HostIP, p.Protocol, p.HostPort}
			if one.ip == "" || one.ip == "::" {
				one.ip = "0.0.0.0"
			}
			if one.protocol == "" {
				one.protocol = corev1.ProtocolTCP
			}
			all = append(all, one)
		}
	}
	return all
}

func (p port) conflicts(other port) bool {
	return p.number == other.number && p.protocol == other.protocol && (p.ip == other.ip || p.ip == "0.0.0.0" || other.ip == "0.0.0.0")
}

// checkTaints rejects pods that would have to leave at once. That NoSchedule was heeded is the scheduler's business. Static pods stay where they are put.
func checkTaints(node *Node, _ []*corev1.Pod, pod *corev1.Pod) *Rejection {
	if lifecycle.Static(pod.Annotations) {
		return nil
	}
	for i := range node.Taints {
		taint := &node.Taints[i]
		tolerated := slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return tolerates(&t, taint) })
		if taint.Effect == corev1.TaintEffectNoExecute && !tolerated {
			return failed("TaintToleration", "node(s) had taints that the pod didn't tolerate")
		}
	}
	return nil
}

func tolerates(t *corev1.Toleration, taint *corev1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	switch t.Operator {
	case corev1.TolerationOpExists:
		return true
	case corev1.TolerationOpEqual, "":
		return t.Key != "" && t.Value == taint.Value
	}
	return false
}

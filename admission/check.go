package admission

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/lifecycle"
	"github.com/podmill/podmill/internal/resources"
)

// Node is what pods are measured against.
type Node struct {
	Name        string
	Labels      map[string]string
	Taints      []corev1.Taint
	Allocatable corev1.ResourceList // with the number of pods; what is not in it is not bounded, but for extended resources there is none
	OS          string              // as in GOOS
}

// Rejection is why a pod cannot run, in the words of a pod's status.
type Rejection struct {
	Reason  string
	Message string
}

// String returns both.
func (r *Rejection) String() string { return r.Reason + ": " + r.Message }

// Check returns why a pod cannot run on the node beside others, nil if it can. Others that are over do not count, nor does the pod itself.
func Check(node *Node, others []*corev1.Pod, pod *corev1.Pod) *Rejection {
	others = slices.DeleteFunc(slices.Clone(others), func(o *corev1.Pod) bool { return over(o) || o.UID == pod.UID })
	for _, check := range []func(*Node, []*corev1.Pod, *corev1.Pod) *Rejection{
		checkOS, checkResources, checkAffinity, checkName, checkPorts, checkTaints,
	} {
		if r := check(node, others, pod); r != nil {
			return r
		}
	}
	return nil
}

// over reports whether nothing of the pod runs any more.
func over(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
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
	one := *resource.NewQuantity(1, resource.DecimalSI)
	if r := insufficient(node, corev1.ResourcePods, one, *resource.NewQuantity(int64(len(others)), resource.DecimalSI)); r != nil {
		return r
	}
	requests := resources.Requests(pod)
	names := make([]corev1.ResourceName, 0, len(requests))
	for name := range requests {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		var used resource.Quantity
		for _, other := range others {
			used.Add(resources.Requests(other)[name])
		}
		if r := insufficient(node, name, requests[name], used); r != nil {
			return r
		}
	}
	return nil
}

// insufficient rejects a pod that asks for more than is left of a resource. One that asks for nothing gets it from a node that has too little as well, and an
// extended resource that the node does not know is a device plugin's, which may not have said so yet.
func insufficient(node *Node, name corev1.ResourceName, requested, used resource.Quantity) *Rejection {
	capacity, bounded := node.Allocatable[name]
	if !bounded || requested.IsZero() {
		return nil
	}
	free := capacity.DeepCopy()
	free.Sub(used)
	if requested.Cmp(free) <= 0 {
		return nil
	}
	in := (*resource.Quantity).Value
	if name == corev1.ResourceCPU {
		in = (*resource.Quantity).MilliValue
	}
	return &Rejection{"OutOf" + string(name), fmt.Sprintf(
		"Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d", name, in(&requested), in(&used), in(&capacity))}
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
	if source, ok := pod.Annotations[podmill.AnnotationConfigSource]; ok && source != "api" {
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

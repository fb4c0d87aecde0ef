package node

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// State is what a node says of itself. What is empty it does not say, or not any more.
type State struct {
	Addresses       []corev1.NodeAddress
	Capacity        corev1.ResourceList
	Allocatable     corev1.ResourceList
	Info            corev1.NodeSystemInfo
	Images          []corev1.ContainerImage
	RuntimeHandlers []corev1.NodeRuntimeHandler
	Features        *corev1.NodeFeatures
	VolumesInUse    []corev1.UniqueVolumeName
	// Port is where the node's own API is served; zero is nowhere.
	Port int32
	// Conditions need type, status, reason and message; the times are seen to.
	Conditions []corev1.NodeCondition
}

// Status returns what a Node's status says next, given what it last said. Conditions and resources that only last has are left out: they
// are somebody else's.
func Status(last *corev1.NodeStatus, s State, now time.Time) *corev1.NodeStatus {
	at := metav1.NewTime(now).Rfc3339Copy()
	next := &corev1.NodeStatus{
		Addresses: s.Addresses, Capacity: s.Capacity, Allocatable: s.Allocatable, NodeInfo: s.Info, Images: s.Images,
		RuntimeHandlers: s.RuntimeHandlers, Features: s.Features, VolumesInUse: s.VolumesInUse,
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: s.Port}},
	}
	for _, c := range s.Conditions {
		c.LastHeartbeatTime, c.LastTransitionTime = at, at
		if before := condition(last, c.Type); before != nil && before.Status == c.Status {
			c.LastTransitionTime = before.LastTransitionTime
		}
		next.Conditions = append(next.Conditions, c)
	}
	return next
}

// news reports whether next says something that last does not, but for when it was said.
func news(last, next *corev1.NodeStatus) bool {
	for i := range next.Conditions {
		c := &next.Conditions[i]
		before := condition(last, c.Type)
		if before == nil || before.Status != c.Status || before.Reason != c.Reason || before.Message != c.Message {
			return true
		}
	}
	return !equality.Semantic.DeepEqual(last.Addresses, next.Addresses) ||
		!within(next.Capacity, last.Capacity) || !within(next.Allocatable, last.Allocatable) ||
		!equality.Semantic.DeepEqual(last.NodeInfo, next.NodeInfo) || last.DaemonEndpoints != next.DaemonEndpoints ||
		!equality.Semantic.DeepEqual(last.Images, next.Images) ||
		!equality.Semantic.DeepEqual(last.RuntimeHandlers, next.RuntimeHandlers) ||
		!equality.Semantic.DeepEqual(last.Features, next.Features) ||
		!equality.Semantic.DeepEqual(last.VolumesInUse, next.VolumesInUse)
}

// within reports whether all of the resources are among the others in the same quantity.
func within(resources, others corev1.ResourceList) bool {
	for name, quantity := range resources {
		if other, ok := others[name]; !ok || other.Cmp(quantity) != 0 {
			return false
		}
	}
	return true
}

func condition(s *corev1.NodeStatus, kind corev1.NodeConditionType) *corev1.NodeCondition {
	at := slices.IndexFunc(s.Conditions, func(c corev1.NodeCondition) bool { return c.Type == kind })
	if at < 0 {
		return nil
	}
	return &s.Conditions[at]
}

// Ready returns the condition Ready in the kubelet's words: True unless something is wrong. Errors that are nil are nothing.
func Ready(wrong ...error) corev1.NodeCondition {
	var messages []string
	for _, err := range wrong {
		if err != nil && !slices.Contains(messages, err.Error()) {
			messages = append(messages, err.Error())
		}
	}
	c := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status"}
	if len(messages) > 0 {
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, "KubeletNotReady", strings.Join(messages, ", ")
	}
	if len(messages) > 1 {
		c.Message = "[" + c.Message + "]"
	}
	return c
}

// Pressure returns one of the conditions MemoryPressure, DiskPressure and PIDPressure in the kubelet's words.
func Pressure(kind corev1.NodeConditionType, under bool) corev1.NodeCondition {
	words := map[corev1.NodeConditionType][4]string{
		corev1.NodeMemoryPressure: {"KubeletHasSufficientMemory", "kubelet has sufficient memory available", "KubeletHasInsufficientMemory", "kubelet has insufficient memory available"},
		corev1.NodeDiskPressure:   {"KubeletHasNoDiskPressure", "kubelet has no disk pressure", "KubeletHasDiskPressure", "kubelet has disk pressure"},
		corev1.NodePIDPressure:    {"KubeletHasSufficientPID", "kubelet has sufficient PID available", "KubeletHasInsufficientPID", "kubelet has insufficient PID available"},
	}[kind]
	if under {
		return corev1.NodeCondition{Type: kind, Status: corev1.ConditionTrue, Reason: words[2], Message: words[3]}
	}
	return corev1.NodeCondition{Type: kind, Status: corev1.ConditionFalse, Reason: words[0], Message: words[1]}
}

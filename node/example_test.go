package node_test

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/node"
)

// A node's status is a pure function of what it said last and what is so now.
func ExampleStatus() {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	last := node.Status(&corev1.NodeStatus{}, node.State{Conditions: []corev1.NodeCondition{node.Ready()}}, noon)
	next := node.Status(last, node.State{Conditions: []corev1.NodeCondition{node.Ready(errors.New("PLEG is not healthy"))}}, noon.Add(time.Hour))
	for _, s := range []*corev1.NodeStatus{last, next} {
		c := s.Conditions[0]
		fmt.Println(c.Type, c.Status, c.Reason, c.Message, c.LastTransitionTime.UTC().Format("15:04"))
	}
	// Output:
	// Ready True KubeletReady kubelet is posting ready status 12:00
	// Ready False KubeletNotReady PLEG is not healthy 13:00
}

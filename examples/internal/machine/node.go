package machine

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/node"
)

// Labels are those that every node has.
func (f *Flags) Labels() map[string]string {
	return map[string]string{corev1.LabelHostname: f.NodeName, corev1.LabelOSStable: runtime.GOOS, corev1.LabelArchStable: runtime.GOARCH}
}

// State says how the node does: what does not change is in s, with the conditions of pressure where somebody measures that, and agent is what is wrong with the
// agent, nil if nothing is.
func (f *Flags) State(ctx context.Context, s node.State, reporter podmill.StatusReporter, agent ...error) node.State {
	for _, ip := range f.NodeIPs {
		s.Addresses = append(s.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
	}
	s.Addresses = append(s.Addresses, corev1.NodeAddress{Type: corev1.NodeHostName, Address: f.NodeName})
	status, err := reporter.RuntimeStatus(ctx)
	var network error
	if err == nil {
		s.SetRuntime(status)
		err = wrong("RuntimeReady", status.RuntimeReady)
		network = wrong("NetworkReady", status.NetworkReady)
	}
	if s.Conditions == nil {
		s.Conditions = []corev1.NodeCondition{
			node.Pressure(corev1.NodeMemoryPressure, false), node.Pressure(corev1.NodeDiskPressure, false), node.Pressure(corev1.NodePIDPressure, false),
		}
	}
	s.Conditions = append(slices.Clip(s.Conditions), node.Ready(append([]error{err, network}, agent...)...))
	return s
}

func wrong(name string, c podmill.Condition) error {
	if c.OK {
		return nil
	}
	return fmt.Errorf("container runtime not ready: %s=false reason:%s message:%s", name, c.Reason, c.Message)
}

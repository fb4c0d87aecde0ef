package main

import (
	"context"
	"maps"
	"runtime"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/admission"
	"github.com/podmill/podmill/examples/internal/machine"
	"github.com/podmill/podmill/node"
	"github.com/podmill/podmill/volume/csi"
)

// hardware is what this machine is and has. Pods may have all of it: nothing is set apart for the system.
func (c *config) hardware() (node.State, error) {
	resources, err := c.Resources()
	if err != nil {
		return node.State{}, err
	}
	resources[corev1.ResourcePods] = c.maxPods
	info, err := machine.Info()
	return node.State{Capacity: resources, Allocatable: resources, Info: info}, err
}

// labels are those that every node has, and those of --node-labels.
func (c *config) labels() map[string]string {
	labels := c.Labels()
	maps.Copy(labels, c.nodeLabels)
	return labels
}

// admits says what pods are measured against: this machine, with what the cluster has made of it.
func (c *config) admits(hardware node.State, self *node.Node, drivers *csi.Drivers, down bool) admission.Node {
	n := admission.Node{Name: c.NodeName, OS: runtime.GOOS, Allocatable: hardware.Allocatable, Labels: c.labels(), Taints: c.taints, ShuttingDown: down}
	if known := self.Known(); known != nil {
		n.Labels, n.Taints = known.Labels, known.Spec.Taints
	}
	labels := map[string]string{}
	maps.Copy(labels, n.Labels)
	maps.Copy(labels, drivers.Topology()) // which may be newer than what is known of the Node
	n.Labels = labels
	return n
}

// inUse names the volumes that must not be detached from the node.
func inUse(ctx context.Context, drivers *csi.Drivers) []corev1.UniqueVolumeName {
	names, err := drivers.InUse()
	if err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "volumes may be in use that the node does not name")
	}
	return names
}

package node_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/node"
)

func TestWhatANodeSaysOfItsRuntime(t *testing.T) {
	var got node.State
	got.SetRuntime(&podmill.RuntimeStatus{
		Name: "containerd", Version: "v2.4.2", SupplementalGroupsPolicy: true,
		Handlers: []podmill.RuntimeHandler{{Name: "runc", UserNamespaces: true}, {}},
	})
	yes, no := true, false
	want := node.State{
		Info: corev1.NodeSystemInfo{ContainerRuntimeVersion: "containerd://v2.4.2"},
		RuntimeHandlers: []corev1.NodeRuntimeHandler{
			{Name: "", Features: &corev1.NodeRuntimeHandlerFeatures{RecursiveReadOnlyMounts: &no, UserNamespaces: &no}},
			{Name: "runc", Features: &corev1.NodeRuntimeHandlerFeatures{RecursiveReadOnlyMounts: &no, UserNamespaces: &yes}},
		},
		Features: &corev1.NodeFeatures{SupplementalGroupsPolicy: &yes},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

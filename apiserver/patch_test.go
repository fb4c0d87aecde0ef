package apiserver

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// The patch has a node's part of the status, whole, and nothing of the parts of others.
func TestStatusPatch(t *testing.T) {
	status := &corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: "10.0.0.1", PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}}, NominatedNodeName: "n",
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue},
			{Type: "example.com/gate", Status: corev1.ConditionTrue},
			{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "PreemptionByScheduler"},
		},
		ResourceClaimStatuses: []corev1.PodResourceClaimStatus{{Name: "c"}},
	}
	patch, err := statusPatch("u", status)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"metadata":{"uid":"u"},"status":{
		"observedGeneration":null,"phase":"Running","message":null,"reason":null,"hostIP":null,"podIP":"10.0.0.1","startTime":null,"qosClass":null,
		"initContainerStatuses":null,"containerStatuses":null,"ephemeralContainerStatuses":null,
		"hostIPs":[{"$patch":"replace"}],"podIPs":[{"$patch":"replace"},{"ip":"10.0.0.1"}],
		"conditions":[{"type":"Ready","status":"True","lastProbeTime":null,"lastTransitionTime":null,"reason":null,"message":null,"observedGeneration":null},
			{"$patch":"delete","type":"PodResizePending"},{"$patch":"delete","type":"PodResizeInProgress"}]}}`
	if diff := cmp.Diff(decoded(t, []byte(want)), decoded(t, patch)); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}
	again, _ := statusPatch("u", status.DeepCopy())
	if string(again) != string(patch) {
		t.Errorf("the same status gives %s, then %s", patch, again)
	}
}

// What a node does not say any more is removed: else it would find with each look that the API says something else, and write again.
func TestWhatANodeDoesNotSayAnyMoreIsRemoved(t *testing.T) {
	part, err := nodeStatusPatch(&corev1.NodeStatus{VolumesInUse: []corev1.UniqueVolumeName{"v"}, VolumesAttached: []corev1.AttachedVolume{{Name: "v"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"images", "runtimeHandlers", "features"} {
		if value, there := part[field]; !there || value != nil {
			t.Errorf("%s is %v, want null", field, value)
		}
	}
	info := part["nodeInfo"].(map[string]any)
	for _, field := range []string{"swap", "runningInUserNamespace"} {
		if value, there := info[field]; !there || value != nil {
			t.Errorf("nodeInfo.%s is %v, want null", field, value)
		}
	}
	if _, there := part["volumesAttached"]; there || part["volumesInUse"] == nil {
		t.Errorf("the patch is %v, want the volumes in use, and not those that are attached", part)
	}
}

func TestDisruptionByTheNodeIsTold(t *testing.T) {
	for reason, own := range map[string]bool{corev1.PodReasonTerminationByKubelet: true, "DeletionByTaintManager": false} {
		if c := (&corev1.PodCondition{Type: corev1.DisruptionTarget, Reason: reason}); nodes(c) != own {
			t.Errorf("DisruptionTarget by reason %s is the node's: %v, want %v", reason, nodes(c), own)
		}
	}
}

func decoded(t *testing.T, data []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return v
}

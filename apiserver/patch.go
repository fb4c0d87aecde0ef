package apiserver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// statusPatch returns a strategic merge patch that makes a node's part of the status of the pod of that UID what status says, whatever the server
// holds: a field that status leaves out is removed, a list is replaced. The parts of others are not in it and stay: the scheduler's nomination, claims of
// resources, and conditions that somebody else sets.
//
// The server refuses it for a pod of another UID. The same status gives the same bytes.
func statusPatch(uid types.UID, status *corev1.PodStatus) ([]byte, error) {
	said, err := fieldsOf(status)
	if err != nil {
		return nil, fmt.Errorf("encode status: %w", err)
	}
	part := map[string]any{}
	for _, field := range []string{
		"observedGeneration", "phase", "message", "reason", "hostIP", "podIP", "startTime", "qosClass",
		"initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses",
	} {
		part[field] = said[field] // null removes it
	}
	// Lists that are merged by a key are told to be replaced.
	replace := map[string]any{"$patch": "replace"}
	for _, field := range []string{"hostIPs", "podIPs"} {
		items, _ := said[field].([]any)
		part[field] = append([]any{replace}, items...)
	}
	own := slices.DeleteFunc(slices.Clone(status.Conditions), func(c corev1.PodCondition) bool { return !nodes(&c) })
	slices.SortFunc(own, func(a, b corev1.PodCondition) int { return cmp.Compare(a.Type, b.Type) }) // the server has an order of its own
	var conditions []any
	for i := range own {
		c := &own[i]
		condition, err := fieldsOf(c)
		if err != nil {
			return nil, fmt.Errorf("encode condition %s: %w", c.Type, err)
		}
		removing(condition, "reason", "message", "observedGeneration")
		conditions = append(conditions, condition)
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodResizePending, corev1.PodResizeInProgress} { // they are there while there is something to say
		if !slices.ContainsFunc(own, func(c corev1.PodCondition) bool { return c.Type == kind }) {
			conditions = append(conditions, map[string]any{"$patch": "delete", "type": kind})
		}
	}
	part["conditions"] = conditions
	return json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid}, "status": part})
}

// nodes reports whether a condition is a node's to say. DisruptionTarget is said by several; a node's has a reason of its own (KEP-3329).
func nodes(c *corev1.PodCondition) bool {
	switch c.Type {
	case corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled,
		corev1.AllContainersRestarting, corev1.PodResizePending, corev1.PodResizeInProgress:
		return true
	case corev1.DisruptionTarget:
		return c.Reason == corev1.PodReasonTerminationByKubelet
	}
	return false
}

// nodeStatusPatch returns the part of a strategic merge patch that makes a node's own part of its status what status says: a field that status leaves out is removed,
// and the addresses are replaced. Conditions that it does not name stay, as do resources that somebody else advertises, and the volumes that a controller attaches.
func nodeStatusPatch(status *corev1.NodeStatus) (map[string]any, error) {
	part, err := fieldsOf(status)
	if err != nil {
		return nil, fmt.Errorf("encode status: %w", err)
	}
	delete(part, "volumesAttached")
	removing(part, "images", "runtimeHandlers", "features", "volumesInUse")
	if info, ok := part["nodeInfo"].(map[string]any); ok {
		removing(info, "swap", "runningInUserNamespace")
	}
	addresses, _ := part["addresses"].([]any)
	part["addresses"] = append([]any{map[string]any{"$patch": "replace"}}, addresses...) // of one type there may be several
	return part, nil
}

// removing has a patch remove those of the fields that it does not set.
func removing(part map[string]any, fields ...string) {
	for _, field := range fields {
		if _, said := part[field]; !said {
			part[field] = nil
		}
	}
}

// fieldsOf returns an object's fields as they are in JSON.
func fieldsOf(object any) (map[string]any, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	return fields, json.Unmarshal(data, &fields)
}

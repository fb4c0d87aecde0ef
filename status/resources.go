package status

import (
	"encoding/json"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/cpu"
)

// resourcesOf returns what a running container has and what it was allocated, nil where that is not known. It has what it was given last; where the runtime says
// otherwise that is what counts.
func resourcesOf(c *podmill.Container, resize *podmill.ResizeProgress) (has *corev1.ResourceRequirements, allocated corev1.ResourceList) {
	r, known := startedWith(c)
	if known {
		allocated = r.Requests
	}
	if resize != nil {
		if given, ok := resize.Actual[c.ID]; ok {
			r, known = given, true
		}
		if given, ok := resize.Allocated[c.Name]; ok {
			allocated = given.Requests
		}
	}
	if !known {
		return nil, allocated
	}
	return observed(r, c.Resources), allocated
}

// startedWith returns the resources that a container was started with, where it tells.
func startedWith(c *podmill.Container) (r corev1.ResourceRequirements, ok bool) {
	text, ok := c.Annotations[podmill.AnnotationContainerResources]
	return r, ok && (text == "{}" || json.Unmarshal([]byte(text), &r) == nil)
}

// observed returns what a container was given, with what the runtime says of it. The kernel's units say less than the API's: of what comes to the same in them it is
// what was given that is told. What was not asked for is not told, nor a zero, which says nothing.
func observed(given corev1.ResourceRequirements, seen *podmill.ContainerResources) *corev1.ResourceRequirements {
	if seen == nil {
		return &given
	}
	given.Requests, given.Limits = maps.Clone(given.Requests), maps.Clone(given.Limits)
	milli := func(list corev1.ResourceList, seen int64, units func(milli int64) int64) {
		if q, ok := list[corev1.ResourceCPU]; ok && seen > 0 && units(q.MilliValue()) != units(seen) {
			list[corev1.ResourceCPU] = *resource.NewMilliQuantity(seen, resource.DecimalSI)
		}
	}
	milli(given.Requests, seen.CPURequest, func(m int64) int64 { return int64(cpu.Shares(m)) }) //nolint:gosec // bounded by Shares
	milli(given.Limits, seen.CPULimit, func(m int64) int64 { return cpu.Quota(m, cpu.DefaultPeriod) })
	if q, ok := given.Limits[corev1.ResourceMemory]; ok && seen.MemoryLimit > 0 && q.Value() != seen.MemoryLimit {
		given.Limits[corev1.ResourceMemory] = *resource.NewQuantity(seen.MemoryLimit, resource.BinarySI)
	}
	return &given
}

// resizing are the conditions of a pod that asks for other resources than it had (KEP-1287). They are there while there is something to say. A pod that ends is not
// resized any more.
func resizing(in *Input, status *corev1.PodStatus, now time.Time) []corev1.PodCondition {
	p := in.Progress.Resize
	if p == nil || final(status.Phase) || in.Progress.Termination != nil {
		return nil
	}
	var out []corev1.PodCondition
	if p.Pending != "" {
		out = append(out, condition(in, corev1.PodResizePending, verdict{ok: true, reason: p.Pending, message: p.PendingMessage}, now))
	}
	if p.InProgress {
		v := verdict{ok: true}
		if p.Error != "" {
			v.reason, v.message = corev1.PodReasonError, p.Error
		}
		c := condition(in, corev1.PodResizeInProgress, v, now)
		c.ObservedGeneration = p.Generation
		out = append(out, c)
	}
	return out
}

package syncpod

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/internal/lifecycle"
	"github.com/podmill/podmill/internal/qos"
)

// The kubelet's OOM scores: a guaranteed container goes last, one that asked for nothing first, and those in between never overtake either.
const (
	oomGuaranteed = -997
	oomBestEffort = 1000
)

// oomScoreAdj returns a container's OOM score adjustment, as Kubernetes documents it: the less of the node's memory it asked for, the
// sooner it goes. A sidecar goes no sooner than the container that asked for most (KEP-753).
func oomScoreAdj(pod *corev1.Pod, c *corev1.Container, kind lifecycle.Kind, nodeMemory int64) int64 {
	const nodeCritical = "system-node-critical"
	class := qos.Class(pod)
	switch {
	case pod.Spec.PriorityClassName == nodeCritical || class == corev1.PodQOSGuaranteed:
		return oomGuaranteed
	case class == corev1.PodQOSBestEffort:
		return oomBestEffort
	}
	score := burstableScore(c, nodeMemory)
	if kind == lifecycle.Sidecar {
		for i := range pod.Spec.Containers {
			score = min(score, burstableScore(&pod.Spec.Containers[i], nodeMemory))
		}
	}
	return score
}

func burstableScore(c *corev1.Container, nodeMemory int64) int64 {
	score := int64(oomBestEffort)
	if nodeMemory > 0 {
		score -= oomBestEffort * min(c.Resources.Requests.Memory().Value(), nodeMemory) / nodeMemory
	}
	return min(max(score, oomBestEffort+oomGuaranteed), oomBestEffort-1)
}

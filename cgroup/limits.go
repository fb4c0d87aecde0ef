package cgroup

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podmill/podmill/internal/cpu"
	"github.com/podmill/podmill/internal/lifecycle"
)

// Limits are what a pod's cgroup is set to.
type Limits struct {
	CPUShares uint64 // relative to other pods, 1024 for one CPU; translated to a weight on cgroup v2
	CPUQuota  int64  // microseconds in each period; 0 does not limit
	CPUPeriod uint64 // microseconds
	Memory    int64  // bytes; 0 does not limit
}

// LimitsOf returns the limits of a pod as a whole, as the kubelet computes them: shares of what it requests, and a limit where every
// container has one. Init containers run before the others, so that the pod needs the larger of both; sidecars run beside all
// that come after them. period is the CPU period in microseconds.
func LimitsOf(pod *corev1.Pod, period uint64) Limits {
	requests, _ := total(pod, requestsOf)
	limits, bounded := total(pod, limitsOf)
	l := Limits{CPUShares: cpu.Shares(milli(requests[corev1.ResourceCPU])), CPUPeriod: period}
	if bounded[corev1.ResourceCPU] {
		l.CPUQuota = cpu.Quota(milli(limits[corev1.ResourceCPU]), int64(period)) //nolint:gosec // a period is at most a second
	}
	if bounded[corev1.ResourceMemory] {
		q := limits[corev1.ResourceMemory]
		l.Memory = q.Value()
	}
	return l
}

func milli(q resource.Quantity) int64 { return q.MilliValue() }

func limitsOf(r corev1.ResourceRequirements) corev1.ResourceList { return r.Limits }

// requestsOf returns requests; what is limited and not requested is requested up to the limit.
func requestsOf(r corev1.ResourceRequirements) corev1.ResourceList {
	list := r.Limits.DeepCopy()
	if list == nil {
		list = corev1.ResourceList{}
	}
	for resourceName, q := range r.Requests {
		list[resourceName] = q
	}
	return list
}

// total adds up a pod, and tells of which resources every container has some. What the pod says as a whole (KEP-2837) stands for its
// containers; its overhead is added to what is not unlimited.
func total(pod *corev1.Pod, of func(corev1.ResourceRequirements) corev1.ResourceList) (sum corev1.ResourceList, every map[corev1.ResourceName]bool) {
	sum, every = corev1.ResourceList{}, map[corev1.ResourceName]bool{}
	for _, resourceName := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		var apps, sidecars, peak resource.Quantity
		every[resourceName] = true
		for c, kind := range lifecycle.Containers(pod) {
			q, ok := of(c.Resources)[resourceName]
			every[resourceName] = every[resourceName] && ok && !q.IsZero()
			switch kind {
			case lifecycle.App:
				apps.Add(q)
			case lifecycle.Sidecar:
				sidecars.Add(q)
				peak = larger(peak, sidecars)
			case lifecycle.Init:
				q.Add(sidecars)
				peak = larger(peak, q)
			}
		}
		apps.Add(sidecars)
		need := larger(apps, peak)
		if pod.Spec.Resources != nil {
			if q, ok := of(*pod.Spec.Resources)[resourceName]; ok && !q.IsZero() {
				need, every[resourceName] = q, true
			}
		}
		need.Add(pod.Spec.Overhead[resourceName])
		sum[resourceName] = need
	}
	return sum, every
}

func larger(a, b resource.Quantity) resource.Quantity {
	if a.Cmp(b) < 0 {
		return b.DeepCopy()
	}
	return a.DeepCopy()
}

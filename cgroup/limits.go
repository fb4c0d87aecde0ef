package cgroup

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podmill/podmill/internal/cpu"
	"github.com/podmill/podmill/internal/resources"
)

// Limits are what a pod's cgroup is set to.
type Limits struct {
	CPUShares uint64 // relative to other pods, 1024 for one CPU; translated to a weight on cgroup v2
	CPUQuota  int64  // microseconds in each period; 0 does not limit
	CPUPeriod uint64 // microseconds
	Memory    int64  // bytes; 0 does not limit
	// MemoryMin is memory that the kernel does not take away, MemoryLow what it takes away last, in bytes; cgroup v2 only.
	MemoryMin, MemoryLow int64
	PIDs                 int64 // processes and threads; 0 does not limit
}

// LimitsOf returns the limits of a pod as a whole, as the kubelet computes them: shares of what it requests, and a limit where every
// container has one. Init containers run before the others, so that the pod needs the larger of both; sidecars run beside all
// that come after them. period is the CPU period in microseconds.
func LimitsOf(pod *corev1.Pod, period uint64) Limits {
	requests, _ := resources.Total(pod, requestsOf)
	limits, bounded := resources.Total(pod, resources.Limits)
	l := Limits{CPUShares: cpu.Shares(milli(requests[corev1.ResourceCPU])), CPUPeriod: period}
	if bounded[corev1.ResourceCPU] {
		l.CPUQuota = cpu.Quota(milli(limits[corev1.ResourceCPU]), int64(period)) //nolint:gosec // a period is at most a second
	}
	l.Memory = resources.MemoryLimit(pod)
	return l
}

// reserve reserves the memory that a pod requests, as its class has it.
func (l *Limits) reserve(class corev1.PodQOSClass, pod *corev1.Pod) {
	requests, _ := resources.Total(pod, requestsOf)
	memory := requests.Memory().Value()
	switch class {
	case corev1.PodQOSGuaranteed:
		l.MemoryMin = memory
	case corev1.PodQOSBurstable:
		l.MemoryLow = memory
	}
}

func milli(q resource.Quantity) int64 { return q.MilliValue() }

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

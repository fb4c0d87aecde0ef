package cri

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/cpu"
)

// resources returns what a container may use: shares by what it requests, a quota and a limit by what it is limited to. A limit stands for a
// request that is missing. Nothing asked is nil.
func (t *translation) resources(requests, limits corev1.ResourceList) *runtimeapi.LinuxContainerResources {
	if len(requests) == 0 && len(limits) == 0 {
		return nil
	}
	request, ok := requests[corev1.ResourceCPU]
	if !ok {
		request = limits[corev1.ResourceCPU]
	}
	out := &runtimeapi.LinuxContainerResources{
		CpuShares:          int64(cpu.Shares(request.MilliValue())), //nolint:gosec // bounded by Shares
		CpuPeriod:          t.cpuPeriod,
		CpuQuota:           cpu.Quota(milli(limits[corev1.ResourceCPU]), t.cpuPeriod),
		MemoryLimitInBytes: bytes(limits[corev1.ResourceMemory]),
	}
	for name, q := range limits {
		if size, ok := strings.CutPrefix(string(name), corev1.ResourceHugePagesPrefix); ok {
			out.HugepageLimits = append(out.HugepageLimits, &runtimeapi.HugepageLimit{PageSize: pageSize(size), Limit: uint64(max(0, q.Value()))}) //nolint:gosec // not negative
		}
	}
	slices.SortFunc(out.HugepageLimits, func(a, b *runtimeapi.HugepageLimit) int { return cmp.Compare(a.PageSize, b.PageSize) })
	return out
}

func milli(q resource.Quantity) int64 { return q.MilliValue() }

func bytes(q resource.Quantity) int64 { return q.Value() }

// pageSize is a size of huge pages as the kernel's files name it: 2MB for 2Mi.
func pageSize(size string) string { return strings.TrimSuffix(size, "i") + "B" }

// containerResources is what a container may use, and how soon it goes when memory is short. A container that asks for nothing still has
// the least share of the CPU.
func (t *translation) containerResources(spec *podmill.ContainerSpec) *runtimeapi.LinuxContainerResources {
	r := t.resources(spec.Container.Resources.Requests, spec.Container.Resources.Limits)
	if r == nil {
		r = &runtimeapi.LinuxContainerResources{CpuShares: cpu.MinShares, CpuPeriod: t.cpuPeriod}
	}
	r.OomScoreAdj = spec.OOMScoreAdj
	return r
}

// podResources is what the pod's containers may use together: runtimes whose sandboxes are machines size them by it.
func (t *translation) podResources(pod *corev1.Pod) *runtimeapi.LinuxContainerResources {
	requests, limits := corev1.ResourceList{}, corev1.ResourceList{}
	for i := range pod.Spec.Containers {
		r := pod.Spec.Containers[i].Resources
		addUp(requests, r.Requests)
		addUp(limits, r.Limits)
	}
	return t.resources(requests, limits)
}

func addUp(sum, more corev1.ResourceList) {
	for name, q := range more {
		total := sum[name]
		total.Add(q)
		sum[name] = total
	}
}

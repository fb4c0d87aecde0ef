package cri

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill/internal/cpu"
	"github.com/podmill/podmill/internal/qos"
	"github.com/podmill/podmill/internal/resources"
)

// resources returns CPU and memory in the kernel's units: shares by what is requested, a quota and a limit by what is limited. A limit
// stands for a request that is missing.
func (t *translation) resources(requests, limits corev1.ResourceList) *runtimeapi.LinuxContainerResources {
	request, ok := requests[corev1.ResourceCPU]
	if !ok {
		request = limits[corev1.ResourceCPU]
	}
	limit, memory := limits[corev1.ResourceCPU], limits[corev1.ResourceMemory]
	return t.units(request, limit, memory)
}

func (t *translation) units(request, limit, memory resource.Quantity) *runtimeapi.LinuxContainerResources {
	out := &runtimeapi.LinuxContainerResources{
		CpuShares:          int64(cpu.Shares(request.MilliValue())), //nolint:gosec // bounded by Shares
		CpuPeriod:          t.cpuPeriod,
		CpuQuota:           cpu.Quota(limit.MilliValue(), t.cpuPeriod),
		MemoryLimitInBytes: memory.Value(),
	}
	if t.host.cgroupV2 {
		out.Unified = map[string]string{"memory.oom.group": "1"} // a container short of memory dies as a whole
	}
	return out
}

// containerResources is what a container may use.
func (t *translation) containerResources(pod *corev1.Pod, c *corev1.Container) *runtimeapi.LinuxContainerResources {
	own := c.Resources
	limits := own.Limits
	if r := pod.Spec.Resources; r != nil {
		limits = inherit(limits, r.Limits)
	}
	out := t.resources(own.Requests, limits)
	out.HugepageLimits = t.hugePages(limits)
	switch {
	case !t.host.swapLimits:
	case t.host.cgroupV2:
		out.Unified["memory.swap.max"] = strconv.FormatInt(t.swap.share(pod, own), 10)
	default:
		out.MemorySwapLimitInBytes = out.MemoryLimitInBytes // of both together
	}
	request := own.Requests[corev1.ResourceMemory]
	if high := t.memoryQoS.high(request.Value(), out.MemoryLimitInBytes); high > 0 && t.host.cgroupV2 {
		out.Unified["memory.high"] = strconv.FormatInt(high, 10)
	}
	if file := t.memoryQoS.reserves(pod); file != "" && t.host.cgroupV2 {
		out.Unified[file] = strconv.FormatInt(request.Value(), 10)
	}
	return out
}

// memoryQoS is from where on a container is slowed down that takes memory.
type memoryQoS struct {
	factor      float64 // of the way from the request to the limit; 0 is never
	allocatable int64   // the limit of a container without one, in bytes
	tiers       bool    // what is requested is reserved
}

// reserves is the kernel's file that reserves what a container of the pod requests, empty where nothing is reserved.
func (q memoryQoS) reserves(pod *corev1.Pod) string {
	if !q.tiers {
		return ""
	}
	class := pod.Status.QOSClass
	if class == "" {
		class = qos.Class(pod)
	}
	return map[corev1.PodQOSClass]string{corev1.PodQOSGuaranteed: "memory.min", corev1.PodQOSBurstable: "memory.low"}[class]
}

// swap is what a node has to give to containers; the zero value is none.
type swap struct {
	memory, swap int64 // of the node, in bytes
}

// share returns how many bytes of swap a container may have (KEP-2400, LimitedSwap): as much of the node's as it requests of its memory. Only burstable pods have any,
// and of them no container whose memory is limited to what it requests, and no critical pod.
func (s swap) share(pod *corev1.Pod, r corev1.ResourceRequirements) int64 {
	request, limit := r.Requests[corev1.ResourceMemory], r.Limits[corev1.ResourceMemory]
	critical := pod.Spec.Priority != nil && *pod.Spec.Priority >= systemCritical
	if s.memory == 0 || request.IsZero() || request.Cmp(limit) == 0 || critical || qos.Class(pod) != corev1.PodQOSBurstable {
		return 0
	}
	return int64(float64(request.Value()) / float64(s.memory) * float64(s.swap))
}

// systemCritical is the least priority of pods that the system cannot do without.
const systemCritical = 2_000_000_000

// page is what the kernel rounds down to.
const page = 4096

// high returns memory.high in bytes; 0 leaves it alone, as where all that is allowed is guaranteed.
func (q memoryQoS) high(request, limit int64) int64 {
	if q.factor == 0 || request != 0 && request == limit {
		return 0
	}
	if limit == 0 {
		limit = q.allocatable
	}
	high := int64((float64(request)+q.factor*float64(limit-request))/page) * page
	if high <= request {
		return 0
	}
	return high
}

// inherit completes a container's limits by those of its pod (KEP-2837): what its pod may use is all that it may.
func inherit(limits, pod corev1.ResourceList) corev1.ResourceList {
	all := limits.DeepCopy()
	if all == nil {
		all = corev1.ResourceList{}
	}
	for name, q := range pod {
		if own := all[name]; own.IsZero() {
			all[name] = q
		}
	}
	return all
}

// hugePages limits huge pages of every size that the machine has: a container gets those that it asked for.
func (t *translation) hugePages(limits corev1.ResourceList) []*runtimeapi.HugepageLimit {
	var out []*runtimeapi.HugepageLimit
	for name, q := range limits {
		size, ok := strings.CutPrefix(string(name), corev1.ResourceHugePagesPrefix)
		if !ok {
			continue
		}
		if bytes, err := resource.ParseQuantity(size); err == nil {
			out = append(out, &runtimeapi.HugepageLimit{PageSize: pageSize(bytes.Value()), Limit: uint64(max(0, q.Value()))}) //nolint:gosec // not negative
		}
	}
	for _, size := range t.host.pageSizes {
		if !slices.ContainsFunc(out, func(l *runtimeapi.HugepageLimit) bool { return l.PageSize == size }) {
			out = append(out, &runtimeapi.HugepageLimit{PageSize: size})
		}
	}
	slices.SortFunc(out, func(a, b *runtimeapi.HugepageLimit) int { return cmp.Compare(a.PageSize, b.PageSize) })
	return out
}

// podResources is what the pod's containers may use together: runtimes whose sandboxes are machines size them by it.
func (t *translation) podResources(pod *corev1.Pod) *runtimeapi.LinuxContainerResources {
	request, _ := resources.OfContainers(pod, corev1.ResourceCPU, func(r corev1.ResourceRequirements) corev1.ResourceList { return r.Requests })
	limit, _ := resources.OfContainers(pod, corev1.ResourceCPU, resources.Limits)
	memory, _ := resources.OfContainers(pod, corev1.ResourceMemory, resources.Limits)
	if request.IsZero() {
		request = limit
	}
	return t.units(request, limit, memory)
}

// overhead is what the sandbox itself needs, as if it were requested and limited.
func (t *translation) overhead(pod *corev1.Pod) *runtimeapi.LinuxContainerResources {
	if pod.Spec.Overhead == nil {
		return nil
	}
	return t.resources(pod.Spec.Overhead, pod.Spec.Overhead)
}

package cgroup_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podmill/podmill/cgroup"
	. "github.com/podmill/podmill/podmilltest"
)

// asks makes a container's resources: "cpu request, cpu limit, memory request, memory limit", each of which may be empty.
func asks(cpuRequest, cpuLimit, memoryRequest, memoryLimit string) ContainerOption {
	return func(c *corev1.Container) {
		set := func(list *corev1.ResourceList, name corev1.ResourceName, q string) {
			if q == "" {
				return
			}
			if *list == nil {
				*list = corev1.ResourceList{}
			}
			(*list)[name] = resource.MustParse(q)
		}
		set(&c.Resources.Requests, corev1.ResourceCPU, cpuRequest)
		set(&c.Resources.Limits, corev1.ResourceCPU, cpuLimit)
		set(&c.Resources.Requests, corev1.ResourceMemory, memoryRequest)
		set(&c.Resources.Limits, corev1.ResourceMemory, memoryLimit)
	}
}

func overhead(pod *corev1.Pod) {
	pod.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("1Mi")}
}

// Memory is reserved by class: all that guaranteed pods ask for, and what burstable ones do as long as it can be (KEP-2570).
func TestReservedMemory(t *testing.T) {
	const mi = 1 << 20
	p := Pod("p", Container("a", "x", asks("", "", "10Mi", "30Mi")), Container("b", "x", asks("", "", "", "20Mi")), overhead)
	for class, want := range map[corev1.PodQOSClass]cgroup.Limits{
		corev1.PodQOSGuaranteed: {MemoryMin: 31 * mi}, corev1.PodQOSBurstable: {MemoryLow: 31 * mi}, corev1.PodQOSBestEffort: {},
	} {
		if got := cgroup.Reserved(class, p); got != want {
			t.Errorf("%s: %+v, want %+v", class, got, want)
		}
	}
}

func TestLimitsOf(t *testing.T) {
	const mi = 1 << 20
	for _, tc := range []struct {
		name string
		pod  *corev1.Pod
		want cgroup.Limits
	}{
		{"best effort", Pod("p", Container("a", "x")), cgroup.Limits{CPUShares: 2}},
		{"guaranteed", Pod("p", Container("a", "x", asks("500m", "500m", "10Mi", "10Mi")), Container("b", "x", asks("", "1500m", "", "20Mi"))), cgroup.Limits{CPUShares: 2048, CPUQuota: 200000, Memory: 30 * mi}},
		{"one without a limit frees the pod", Pod("p", Container("a", "x", asks("100m", "500m", "", "10Mi")), Container("b", "x", asks("100m", "", "", "20Mi"))), cgroup.Limits{CPUShares: 204, Memory: 30 * mi}},
		{"a larger init container", Pod("p", InitContainer("i", "x", asks("2", "2", "", "50Mi")), Container("a", "x", asks("1", "1", "", "10Mi"))), cgroup.Limits{CPUShares: 2048, CPUQuota: 200000, Memory: 50 * mi}},
		{"a sidecar runs beside", Pod("p", Sidecar("s", "x", asks("1", "1", "", "10Mi")), InitContainer("i", "x", asks("1", "1", "", "50Mi")), Container("a", "x", asks("1", "1", "", "10Mi"))), cgroup.Limits{CPUShares: 2048, CPUQuota: 200000, Memory: 60 * mi}},
		{"overhead", Pod("p", Container("a", "x", asks("250m", "250m", "1Mi", "1Mi")), overhead), cgroup.Limits{CPUShares: 512, CPUQuota: 50000, Memory: 2 * mi}},
		{"the pod as a whole", Pod("p", Container("a", "x"), func(pod *corev1.Pod) {
			pod.Spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("64Mi")}}
		}), cgroup.Limits{CPUShares: 1024, CPUQuota: 100000, Memory: 64 * mi}},
	} {
		tc.want.CPUPeriod = 100000
		if got := cgroup.LimitsOf(tc.pod, 100000); got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
	}
	// B112: another period does not change the limit.
	if got := cgroup.LimitsOf(Pod("p", Container("a", "x", asks("", "500m", "", ""))), 10000); got.CPUQuota != 5000 || got.CPUPeriod != 10000 {
		t.Errorf("with a period of 10 ms: %+v", got)
	}
}

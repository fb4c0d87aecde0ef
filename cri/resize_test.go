package cri

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill"
)

func resizeTo(cpu, memory string) *podmill.Resize {
	pod := testPod()
	c := &pod.Spec.Containers[0]
	c.Resources.Requests, c.Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("250m"), "memory": resource.MustParse("16Mi")}, corev1.ResourceList{}
	if cpu != "" {
		c.Resources.Limits["cpu"] = resource.MustParse(cpu)
	}
	if memory != "" {
		c.Resources.Limits["memory"] = resource.MustParse(memory)
	}
	return &podmill.Resize{Pod: pod, Container: c}
}

// What is not limited any more is said to be free: CRI leaves alone what is not said. Huge pages and the OOM score stay as they are.
func TestResizedResources(t *testing.T) {
	qos := translator(true)
	qos.memoryQoS = memoryQoS{factor: 0.5}
	for name, tc := range map[string]struct {
		translate *translation
		resize    *podmill.Resize
		want      *runtimeapi.LinuxContainerResources
	}{
		"v1":                {translator(false), resizeTo("500m", "32Mi"), &runtimeapi.LinuxContainerResources{CpuPeriod: 100000, CpuShares: 256, CpuQuota: 50000, MemoryLimitInBytes: 32 << 20}},
		"v1 without limits": {translator(false), resizeTo("", ""), &runtimeapi.LinuxContainerResources{CpuPeriod: 100000, CpuShares: 256, CpuQuota: -1, MemoryLimitInBytes: -1}},
		"v2": {translator(true), resizeTo("500m", "32Mi"), &runtimeapi.LinuxContainerResources{CpuPeriod: 100000, CpuShares: 256, CpuQuota: 50000, MemoryLimitInBytes: 32 << 20,
			Unified: map[string]string{"memory.oom.group": "1", "memory.swap.max": "0", "memory.high": "max"}}},
		"memory QoS": {qos, resizeTo("500m", "32Mi"), &runtimeapi.LinuxContainerResources{CpuPeriod: 100000, CpuShares: 256, CpuQuota: 50000, MemoryLimitInBytes: 32 << 20,
			Unified: map[string]string{"memory.oom.group": "1", "memory.swap.max": "0", "memory.high": "25165824"}}},
		"memory QoS with all that it may have": {qos, resizeTo("500m", "16Mi"), &runtimeapi.LinuxContainerResources{CpuPeriod: 100000, CpuShares: 256, CpuQuota: 50000, MemoryLimitInBytes: 16 << 20,
			Unified: map[string]string{"memory.oom.group": "1", "memory.swap.max": "0", "memory.high": "max"}}},
	} {
		if diff := cmp.Diff(tc.want, tc.translate.resized(tc.resize), protocmp.Transform()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A limit below what the container cannot do without is not set.
func TestResizeBelowTheWorkingSet(t *testing.T) {
	s := newServer(t)
	s.on("ContainerStats", says(&runtimeapi.ContainerStatsResponse{Stats: &runtimeapi.ContainerStats{
		Memory: &runtimeapi.MemoryUsage{WorkingSetBytes: &runtimeapi.UInt64Value{Value: 24 << 20}, UsageBytes: &runtimeapi.UInt64Value{Value: 48 << 20}},
	}}))
	var got *runtimeapi.UpdateContainerResourcesRequest
	s.on("UpdateContainerResources", func(_ context.Context, request any) (any, error) {
		got = request.(*runtimeapi.UpdateContainerResourcesRequest)
		return &runtimeapi.UpdateContainerResourcesResponse{}, nil
	})
	c := s.start(t).dial(t)
	err := c.ResizeContainer(t.Context(), "c1", resizeTo("500m", "16Mi"))
	if err == nil || !strings.Contains(err.Error(), `attempting to set container "web" memory limit (16777216) below current usage (25165824)`) || got != nil {
		t.Errorf("%v, and the runtime was told %v", err, got)
	}
	if err := c.ResizeContainer(t.Context(), "c1", resizeTo("500m", "32Mi")); err != nil || got.GetContainerId() != "c1" || got.GetLinux().GetMemoryLimitInBytes() != 32<<20 {
		t.Errorf("%v, and the runtime was told %v", err, got)
	}
	if err := c.ResizeContainer(t.Context(), "c1", resizeTo("500m", "")); err != nil || s.called("ContainerStats") != 2 {
		t.Errorf("without a limit nobody has to be asked: %v, %d", err, s.called("ContainerStats"))
	}
}

func TestObservedResources(t *testing.T) {
	if got := observedResources(nil); got != nil {
		t.Errorf("of nothing %+v is seen", got)
	}
	got := observedResources(&runtimeapi.LinuxContainerResources{CpuPeriod: 50000, CpuQuota: 25000, CpuShares: 102, MemoryLimitInBytes: 1 << 20})
	if diff := cmp.Diff(&podmill.ContainerResources{CPURequest: 100, CPULimit: 500, MemoryLimit: 1 << 20}, got); diff != "" {
		t.Error(diff)
	}
	got = observedResources(&runtimeapi.LinuxContainerResources{CpuPeriod: 50000, CpuQuota: -1, CpuShares: 2, MemoryLimitInBytes: -1})
	if diff := cmp.Diff(&podmill.ContainerResources{}, got); diff != "" {
		t.Error(diff)
	}
}

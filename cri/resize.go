package cri

import (
	"context"
	"fmt"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/cpu"
)

// ResizeContainer implements [podmill.Resizer]. The memory that the container uses is asked for first, where the new limit is one.
func (c *Client) ResizeContainer(ctx context.Context, id string, resize *podmill.Resize) error {
	want := c.translate.resized(resize)
	if limit := want.GetMemoryLimitInBytes(); limit > 0 {
		used, err := c.memoryUsed(ctx, id)
		if err != nil {
			return err
		}
		if uint64(limit) < used {
			return fmt.Errorf("attempting to set container %q memory limit (%d) below current usage (%d)", resize.Container.Name, limit, used)
		}
	}
	_, err := call(ctx, c, op{"UpdateContainerResources", id, c.opts.timeout}, c.runtime.UpdateContainerResources,
		&runtimeapi.UpdateContainerResourcesRequest{ContainerId: id, Linux: want})
	return err
}

// memoryUsed returns how many bytes a container cannot do without: its working set, which leaves out what the kernel can drop.
func (c *Client) memoryUsed(ctx context.Context, id string) (uint64, error) {
	r, err := call(ctx, c, op{"ContainerStats", id, c.opts.timeout}, c.runtime.ContainerStats, &runtimeapi.ContainerStatsRequest{ContainerId: id})
	if err != nil {
		return 0, err
	}
	return r.GetStats().GetMemory().GetWorkingSetBytes().GetValue(), nil
}

// resized returns what a running container is to have. CRI leaves alone what is zero, so that what is not limited any more has to be said.
func (t *translation) resized(resize *podmill.Resize) *runtimeapi.LinuxContainerResources {
	out := t.containerResources(resize.Pod, resize.Container)
	out.HugepageLimits = nil // they stay as they are
	if out.CpuQuota == 0 {
		out.CpuQuota = -1
	}
	if out.MemoryLimitInBytes == 0 {
		out.MemoryLimitInBytes = -1
		if out.MemorySwapLimitInBytes == 0 && t.host.swapLimits && !t.host.cgroupV2 {
			out.MemorySwapLimitInBytes = -1
		}
	}
	if t.host.cgroupV2 && out.Unified["memory.high"] == "" {
		out.Unified["memory.high"] = "max"
	}
	return out
}

// observedResources is what a runtime says that a container may use; nil where it does not.
func observedResources(r *runtimeapi.LinuxContainerResources) *podmill.ContainerResources {
	if r == nil {
		return nil
	}
	return &podmill.ContainerResources{
		CPURequest: cpu.OfShares(r.GetCpuShares()), CPULimit: cpu.OfQuota(r.GetCpuQuota(), r.GetCpuPeriod()), MemoryLimit: max(0, r.GetMemoryLimitInBytes()),
	}
}

package podmilltest

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// leastMemory is what a container uses that nobody has said anything else of.
const leastMemory = 1 << 20

// ResizeContainer implements [podmill.Resizer].
func (r *Runtime) ResizeContainer(ctx context.Context, id string, resize *podmill.Resize) error {
	to := resourcesOf(resize.Pod, resize.Container)
	about := fmt.Sprintf("%s cpu=%dm..%dm memory=%d", r.containerName(id), to.CPURequest, to.CPULimit, to.MemoryLimit)
	return r.call(ctx, OpResizeContainer, about, func() error {
		c, err := r.findContainer(id)
		switch {
		case err != nil:
			return err
		case c.seen.State != podmill.StateRunning:
			return fmt.Errorf("container %s is %v, not running", id, c.seen.State)
		case to.MemoryLimit > 0 && to.MemoryLimit < c.memory:
			return fmt.Errorf("attempting to set container %q memory limit (%d) below current usage (%d)", c.seen.Name, to.MemoryLimit, c.memory)
		}
		c.seen.Resources = to
		return nil
	})
}

// UseMemory has a container use so many bytes of memory.
func (r *Runtime) UseMemory(pod types.UID, name string, bytes int64) bool {
	return r.hand(pod, name, fmt.Sprintf("uses %d bytes of memory", bytes), func(c *container) { c.memory = bytes })
}

// resourcesOf is what a container may use: what it says itself and, of limits that it does not, its pod.
func resourcesOf(pod *corev1.Pod, c *corev1.Container) *podmill.ContainerResources {
	limits := func(name corev1.ResourceName) (q int64) {
		own, shared := c.Resources.Limits[name], corev1.ResourceList{}
		if pod.Spec.Resources != nil {
			shared = pod.Spec.Resources.Limits
		}
		if own.IsZero() {
			own = shared[name]
		}
		if name == corev1.ResourceCPU {
			return own.MilliValue()
		}
		return own.Value()
	}
	out := &podmill.ContainerResources{CPULimit: limits(corev1.ResourceCPU), MemoryLimit: limits(corev1.ResourceMemory)}
	if request, ok := c.Resources.Requests[corev1.ResourceCPU]; ok {
		out.CPURequest = request.MilliValue()
	} else {
		out.CPURequest = out.CPULimit
	}
	if out.CPURequest <= 2 { // as a real one's shares have it
		out.CPURequest = 0
	}
	return out
}

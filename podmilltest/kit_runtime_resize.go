package podmilltest

import (
	"errors"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podmill/podmill"
)

// sized is the pod's container with other resources: CPU requested, CPU limit, memory limit, each of which may be empty.
func sized(c *corev1.Container, request, limit, memory string) *corev1.Container {
	out := c.DeepCopy()
	out.Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	set := func(list corev1.ResourceList, name corev1.ResourceName, q string) {
		if q != "" {
			list[name] = resource.MustParse(q)
		}
	}
	set(out.Resources.Requests, corev1.ResourceCPU, request)
	set(out.Resources.Limits, corev1.ResourceCPU, limit)
	set(out.Resources.Limits, corev1.ResourceMemory, memory)
	return out
}

// resizer runs a container with resources, and returns what resizes it.
func (k *runtimeKit) resizer() (sandbox *podmill.SandboxSpec, spec *podmill.ContainerSpec, id string, resize func(to *corev1.Container) error) {
	k.Helper()
	resizer, ok := podmill.As[podmill.Resizer](k.Runtime)
	if !ok {
		k.Skip("the runtime is no Resizer")
	}
	sandbox = k.pod()
	spec = k.container(sandbox, k.runSandbox(sandbox), k.Commands.Sleep(time.Hour))
	spec.Container = sized(spec.Container, "100m", "200m", "64Mi")
	id = k.start(spec)
	k.ready(id)
	return sandbox, spec, id, func(to *corev1.Container) error {
		return resizer.ResizeContainer(k.ctx, id, &podmill.Resize{Pod: sandbox.Pod, Container: to})
	}
}

// wantResources fails the test unless the container runs on, and has these resources, where the runtime tells.
func (k *runtimeKit) wantResources(pod *corev1.Pod, before podmill.Container, want podmill.ContainerResources) {
	k.Helper()
	seen := k.see(pod, before.ID)
	if seen.State != podmill.StateRunning || !seen.StartedAt.Equal(before.StartedAt) {
		k.Errorf("the container was not left alone: %+v", seen)
	}
	if before.Resources == nil {
		return // it does not tell
	}
	if diff := cmp.Diff(&want, seen.Resources); diff != "" {
		k.Errorf("resources (-want +got):\n%s", diff)
	}
}

func testResize(k *runtimeKit) {
	sandbox, spec, id, resize := k.resizer()
	before := k.see(sandbox.Pod, id)
	k.wantResources(sandbox.Pod, before, podmill.ContainerResources{CPURequest: 100, CPULimit: 200, MemoryLimit: 64 << 20})
	err := resize(sized(spec.Container, "250m", "500m", "128Mi"))
	if errors.Is(err, errors.ErrUnsupported) {
		k.Skip("ResizeContainer is not supported")
	}
	k.ok("ResizeContainer", err)
	k.wantResources(sandbox.Pod, before, podmill.ContainerResources{CPURequest: 250, CPULimit: 500, MemoryLimit: 128 << 20})
	k.ok("ResizeContainer to the same", resize(sized(spec.Container, "250m", "500m", "128Mi")))
	k.ok("ResizeContainer to less", resize(sized(spec.Container, "100m", "100m", "48Mi")))
	k.wantResources(sandbox.Pod, before, podmill.ContainerResources{CPURequest: 100, CPULimit: 100, MemoryLimit: 48 << 20})
	k.ok("ResizeContainer to no limits", resize(sized(spec.Container, "100m", "", "")))
	k.wantResources(sandbox.Pod, before, podmill.ContainerResources{CPURequest: 100})
	k.ok("StopContainer", k.Runtime.StopContainer(k.ctx, id, 0))
	k.fails("ResizeContainer of one that has exited", resize(spec.Container))
	k.ok("RemoveContainer", k.Runtime.RemoveContainer(k.ctx, id))
	if err := resize(spec.Container); !errors.Is(err, podmill.ErrNotFound) {
		k.Errorf("ResizeContainer of one that was removed: %v, want ErrNotFound", err)
	}
}

// No process is in less than a page, so that none has to be made to use memory.
func testResizeKeepsWhatIsUsed(k *runtimeKit) {
	sandbox, spec, id, resize := k.resizer()
	before := k.see(sandbox.Pod, id)
	err := resize(sized(spec.Container, "250m", "500m", "4Ki"))
	if errors.Is(err, errors.ErrUnsupported) {
		k.Skip("ResizeContainer is not supported")
	}
	k.fails("ResizeContainer to less memory than is used", err)
	k.wantResources(sandbox.Pod, before, podmill.ContainerResources{CPURequest: 100, CPULimit: 200, MemoryLimit: 64 << 20})
}

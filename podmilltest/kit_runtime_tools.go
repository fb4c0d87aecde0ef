package podmilltest

import (
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// ok fails the test if a call failed.
func (k *runtimeKit) ok(doing string, err error) {
	k.Helper()
	if err != nil {
		k.Fatalf("%s: %v", doing, err)
	}
}

// fails fails the test if a call did not fail.
func (k *runtimeKit) fails(doing string, err error) {
	k.Helper()
	if err == nil {
		k.Errorf("%s succeeded, want an error", doing)
	}
}

// given skips the test if something was not given with the environment.
func (k *runtimeKit) given(what string, given bool) {
	k.Helper()
	if !given {
		k.Skipf("the environment has no %s", what)
	}
}

// promptly fails the test if do takes longer than a call may.
func (k *runtimeKit) promptly(what string, do func()) time.Duration {
	k.Helper()
	start := time.Now()
	do()
	took := time.Since(start)
	if took > k.Patience {
		k.Errorf("%s took %v, want at most %v", what, took, k.Patience)
	}
	return took
}

// eventually waits until is answers true.
func (k *runtimeKit) eventually(what string, is func() bool) {
	k.Helper()
	for start := time.Now(); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Since(start) > k.Patience {
			k.Fatalf("after %v it is not so: %s", k.Patience, what)
		}
	}
}

// pod returns the spec of the first sandbox of a new pod, which is removed after the test.
func (k *runtimeKit) pod(opts ...PodOption) *podmill.SandboxSpec {
	id := strings.ToLower(rand.Text())
	uid := uidOf(id)
	// What the runtime must not read is wrong everywhere.
	opts = append([]PodOption{UID(uid), Container("c", "podmilltest.invalid/unresolved:1", Runs("exit 99"))}, opts...)
	pod := Pod("podmilltest/kit-"+id[:8], opts...)
	spec := &podmill.SandboxSpec{
		Pod: pod, Hostname: pod.Name,
		Labels: map[string]string{
			podmill.LabelPodName: pod.Name, podmill.LabelPodNamespace: pod.Namespace, podmill.LabelPodUID: string(uid),
		},
		Annotations: map[string]string{},
	}
	if pod.Spec.HostNetwork {
		spec.Hostname = ""
	}
	if k.Dir != "" {
		spec.LogDirectory = filepath.Join(k.Dir, "logs", string(uid))
		k.ok("make the log directory", os.MkdirAll(spec.LogDirectory, 0o755))
	}
	if k.Complete != nil {
		k.Complete(spec)
	}
	k.Cleanup(func() { k.removePod(uid) })
	return spec
}

func (k *runtimeKit) removePod(uid types.UID) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*k.Patience)
	defer cancel()
	seen, err := k.Runtime.InspectPod(ctx, uid)
	if err != nil {
		k.Errorf("inspect pod %s to remove it: %v", uid, err)
		return
	}
	for _, s := range seen.Sandboxes {
		if err := k.Runtime.StopSandbox(ctx, s.ID); err != nil {
			k.Errorf("stop sandbox %s at the end: %v", s.ID, err)
		}
		if err := k.Runtime.RemoveSandbox(ctx, s.ID); err != nil {
			k.Errorf("remove sandbox %s at the end: %v", s.ID, err)
		}
	}
}

// again returns the spec of another sandbox of the same pod.
func again(spec *podmill.SandboxSpec, attempt uint32) *podmill.SandboxSpec {
	next := *spec
	next.Attempt = attempt
	return &next
}

// runSandbox runs a sandbox.
func (k *runtimeKit) runSandbox(spec *podmill.SandboxSpec) string {
	k.Helper()
	id, err := k.Runtime.RunSandbox(k.ctx, spec)
	k.ok("RunSandbox", err)
	if id == "" {
		k.Fatal("RunSandbox returned no ID")
	}
	return id
}

// container returns the spec of the pod's container "c" with a resolved command line.
func (k *runtimeKit) container(sandbox *podmill.SandboxSpec, id string, line []string) *podmill.ContainerSpec {
	c := sandbox.Pod.Spec.Containers[0]
	return &podmill.ContainerSpec{
		Sandbox: sandbox, SandboxID: id, Container: &c,
		Image: k.imageID(), Command: line[:1], Args: line[1:],
		CgroupParent: sandbox.CgroupParent,
		LogPath:      c.Name + ".log",
		Labels: map[string]string{
			podmill.LabelPodName: sandbox.Pod.Name, podmill.LabelPodNamespace: sandbox.Pod.Namespace,
			podmill.LabelPodUID: string(sandbox.Pod.UID), podmill.LabelContainerName: c.Name,
		},
		Annotations: map[string]string{},
	}
}

// imageID returns the ID of the environment's image.
func (k *runtimeKit) imageID() string {
	k.Helper()
	image, err := k.Runtime.InspectImage(k.ctx, k.Image)
	k.ok("InspectImage "+k.Image, err)
	return image.ID
}

func (k *runtimeKit) create(spec *podmill.ContainerSpec) string {
	k.Helper()
	id, err := k.Runtime.CreateContainer(k.ctx, spec)
	k.ok("CreateContainer", err)
	if id == "" {
		k.Fatal("CreateContainer returned no ID")
	}
	return id
}

func (k *runtimeKit) start(spec *podmill.ContainerSpec) string {
	k.Helper()
	id := k.create(spec)
	k.ok("StartContainer", k.Runtime.StartContainer(k.ctx, id))
	return id
}

// launch runs a new pod with one container, and waits until it is ready to be told to stop.
func (k *runtimeKit) launch(line []string) (spec *podmill.SandboxSpec, sandbox, container string) {
	k.Helper()
	spec = k.pod()
	sandbox = k.runSandbox(spec)
	container = k.start(k.container(spec, sandbox, line))
	k.ready(container)
	return spec, sandbox, container
}

func (k *runtimeKit) ready(container string) {
	k.Helper()
	if k.Commands.Ready == nil {
		return
	}
	k.eventually("the container's process is ready", func() bool {
		result, err := k.Runtime.Exec(k.ctx, container, k.Commands.Ready())
		return err == nil && result.ExitCode == 0
	})
}

// inspect returns what the runtime holds of a pod.
func (k *runtimeKit) inspect(pod *corev1.Pod) *podmill.RuntimePod {
	k.Helper()
	seen, err := k.Runtime.InspectPod(k.ctx, pod.UID)
	k.ok("InspectPod", err)
	if seen.UID != pod.UID {
		k.Fatalf("InspectPod %s returned pod %s", pod.UID, seen.UID)
	}
	return seen
}

// see returns the pod's container of that ID.
func (k *runtimeKit) see(pod *corev1.Pod, id string) podmill.Container {
	k.Helper()
	for _, c := range k.inspect(pod).Containers {
		if c.ID == id {
			return c
		}
	}
	k.Fatalf("InspectPod does not show container %s", id)
	return podmill.Container{}
}

// exited waits until a container has exited, and returns it.
func (k *runtimeKit) exited(pod *corev1.Pod, id string) podmill.Container {
	k.Helper()
	var c podmill.Container
	k.eventually("container "+id+" has exited", func() bool {
		c = k.see(pod, id)
		return c.State == podmill.StateExited
	})
	return c
}

// output runs a command in a container and returns its standard output.
func (k *runtimeKit) output(container string, line []string) string {
	k.Helper()
	result, err := k.Runtime.Exec(k.ctx, container, line)
	k.ok("Exec", err)
	if result.ExitCode != 0 {
		k.Fatalf("Exec %q exited with %d: %s", line, result.ExitCode, result.Stderr)
	}
	return string(result.Stdout)
}

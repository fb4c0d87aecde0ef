package podmilltest_test

import (
	"context"
	"fmt"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
)

// A runtime holds real state: what a container does is a script, and what happened is told by the log.
func ExampleNewRuntime() {
	ctx := context.Background()
	rt := podmilltest.NewRuntime()
	defer rt.Close()

	pod := podmilltest.Pod("shop/web", podmilltest.Container("nginx", "nginx:1", podmilltest.Runs("exit 3")))
	sandbox := &podmill.SandboxSpec{Pod: pod}
	id, _ := rt.RunSandbox(ctx, sandbox)
	image, _ := rt.PullImage(ctx, &podmill.ImagePull{Image: "nginx:1"})
	container := &pod.Spec.Containers[0]
	c, _ := rt.CreateContainer(ctx, &podmill.ContainerSpec{
		Sandbox: sandbox, SandboxID: id, Container: container, Image: image, Command: container.Command,
	})
	_ = rt.StartContainer(ctx, c)

	for _, entry := range rt.Log().Entries() {
		fmt.Println(entry.Op, entry.About)
	}
	seen, _ := rt.InspectPod(ctx, pod.UID)
	fmt.Println(seen.Container("nginx").State, seen.Container("nginx").ExitCode)
	// Output:
	// RunSandbox shop/web attempt=0
	// PullImage nginx:1
	// CreateContainer shop/web nginx#0
	// StartContainer shop/web nginx#0
	//  shop/web nginx#0 exited code=3 Error
	// exited 3
}

// A fault names the calls that go wrong. Here, the second sandbox is made and the caller is told that it was not.
func ExampleFaulty() {
	ctx := context.Background()
	pod := podmilltest.Pod("shop/web", podmilltest.Container("nginx", "nginx:1"))
	rt := podmilltest.Faulty(podmilltest.NewRuntime(), podmilltest.Fault{
		On: podmilltest.OpRunSandbox, Pod: pod.UID, After: 1, Times: 1,
		Effect: podmilltest.LoseReply(context.DeadlineExceeded),
	})
	for attempt := range uint32(3) {
		_, err := rt.RunSandbox(ctx, &podmill.SandboxSpec{Pod: pod, Attempt: attempt})
		fmt.Println(err)
	}
	seen, _ := rt.InspectPod(ctx, pod.UID)
	fmt.Println(len(seen.Sandboxes), "sandboxes")
	// Output:
	// <nil>
	// context deadline exceeded
	// <nil>
	// 3 sandboxes
}

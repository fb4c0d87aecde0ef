package podmilltest

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

func testStopIsIdempotent(k *runtimeKit) {
	spec, sandbox, container := k.launch(k.Commands.Sleep(time.Hour))
	for range 2 {
		k.ok("StopContainer", k.Runtime.StopContainer(k.ctx, container, k.Patience))
	}
	created := k.container(spec, sandbox, k.Commands.Sleep(time.Hour))
	created.Attempt = 1
	k.ok("StopContainer of one that never started", k.Runtime.StopContainer(k.ctx, k.create(created), k.Patience))
	for range 2 {
		k.ok("StopSandbox", k.Runtime.StopSandbox(k.ctx, sandbox))
	}
	k.ok("StopContainer of a sandbox that is stopped", k.Runtime.StopContainer(k.ctx, container, k.Patience))
	k.ok("StopContainer of one that is not there", k.Runtime.StopContainer(k.ctx, noID, k.Patience))
	k.ok("StopSandbox of one that is not there", k.Runtime.StopSandbox(k.ctx, noID))
}

func testRemoveIsIdempotent(k *runtimeKit) {
	_, sandbox, container := k.launch(k.Commands.Sleep(time.Hour))
	k.ok("StopContainer", k.Runtime.StopContainer(k.ctx, container, 0))
	for range 2 {
		k.ok("RemoveContainer", k.Runtime.RemoveContainer(k.ctx, container))
	}
	k.ok("StopContainer of one that was removed", k.Runtime.StopContainer(k.ctx, container, k.Patience))
	k.ok("StopSandbox", k.Runtime.StopSandbox(k.ctx, sandbox))
	for range 2 {
		k.ok("RemoveSandbox", k.Runtime.RemoveSandbox(k.ctx, sandbox))
	}
	k.ok("StopSandbox of one that was removed", k.Runtime.StopSandbox(k.ctx, sandbox))
	k.ok("RemoveContainer of one that is not there", k.Runtime.RemoveContainer(k.ctx, noID))
	k.ok("RemoveSandbox of one that is not there", k.Runtime.RemoveSandbox(k.ctx, noID))
}

func testRemoveStopsFirst(k *runtimeKit) {
	spec, sandbox, first := k.launch(k.Commands.Stubborn(time.Hour))
	k.promptly("RemoveContainer of one that runs", func() {
		k.ok("RemoveContainer", k.Runtime.RemoveContainer(k.ctx, first))
	})
	second := k.container(spec, sandbox, k.Commands.Stubborn(time.Hour))
	second.Attempt = 1
	k.start(second)
	k.promptly("RemoveSandbox of one that runs", func() {
		k.ok("RemoveSandbox", k.Runtime.RemoveSandbox(k.ctx, sandbox))
	})
	if seen := k.inspect(spec.Pod); !seen.Empty() {
		k.Errorf("after RemoveSandbox there is %+v", seen)
	}
}

func testStopObeysTheSignal(k *runtimeKit) {
	spec, _, container := k.launch(k.Commands.Sleep(time.Hour))
	k.promptly("StopContainer", func() {
		k.ok("StopContainer", k.Runtime.StopContainer(k.ctx, container, time.Hour))
	})
	if c := k.see(spec.Pod, container); c.State != podmill.StateExited || c.ExitCode != 143 {
		k.Errorf("it is %v with code %d when StopContainer returns, want exited with 143", c.State, c.ExitCode)
	}
}

// KEP-4960: a runtime that tells with which signal it stops a container stops it with that which the container asks for.
func testStopSignal(k *runtimeKit) {
	k.given("command that heeds a signal", k.Commands.Heeds != nil)
	spec := k.pod()
	signal, code := corev1.SIGUSR1, 7
	c := k.container(spec, k.runSandbox(spec), k.Commands.Heeds(signal, code))
	c.Container.Lifecycle = &corev1.Lifecycle{StopSignal: &signal}
	id, err := k.Runtime.CreateContainer(k.ctx, c)
	if refusal := (*podmill.ReasonError)(nil); errors.As(err, &refusal) {
		k.Skipf("the runtime refuses it: %v", err)
	}
	k.ok("CreateContainer", err)
	k.ok("StartContainer", k.Runtime.StartContainer(k.ctx, id))
	k.ready(id)
	switch got := k.see(spec.Pod, id).StopSignal; got {
	case "":
		k.Skip("the runtime does not tell with which signal it stops a container")
	case string(signal):
	default:
		k.Errorf("it is to be stopped with %s, want %s", got, signal)
	}
	k.promptly("StopContainer", func() {
		k.ok("StopContainer", k.Runtime.StopContainer(k.ctx, id, k.Patience))
	})
	if end := k.see(spec.Pod, id); end.State != podmill.StateExited || end.ExitCode != int32(code) {
		k.Errorf("it is %v with code %d when StopContainer returns, want exited with %d", end.State, end.ExitCode, code)
	}
}

func testStopKillsAfterTheGrace(k *runtimeKit) {
	spec, _, container := k.launch(k.Commands.Stubborn(time.Hour))
	const grace = 2 * time.Second
	took := k.promptly("StopContainer", func() {
		k.ok("StopContainer", k.Runtime.StopContainer(k.ctx, container, grace))
	})
	if took < grace {
		k.Errorf("StopContainer killed after %v, want not before %v", took, grace)
	}
	if c := k.see(spec.Pod, container); c.State != podmill.StateExited || c.ExitCode != 137 {
		k.Errorf("it is %v with code %d when StopContainer returns, want exited with 137", c.State, c.ExitCode)
	}
}

func testStopWithoutGraceKills(k *runtimeKit) {
	for _, grace := range []time.Duration{0, -time.Second} {
		spec, _, container := k.launch(k.Commands.Stubborn(time.Hour))
		k.promptly("StopContainer", func() {
			k.ok("StopContainer", k.Runtime.StopContainer(k.ctx, container, grace))
		})
		if c := k.see(spec.Pod, container); c.State != podmill.StateExited || c.ExitCode != 137 {
			k.Errorf("after a grace of %v it is %v with code %d, want exited with 137", grace, c.State, c.ExitCode)
		}
	}
}

func testStopAgainWithShorterGrace(k *runtimeKit) {
	spec, _, container := k.launch(k.Commands.Stubborn(time.Hour))
	var stops sync.WaitGroup
	defer stops.Wait()
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	first := make(chan error, 1)
	stops.Go(func() { first <- k.Runtime.StopContainer(ctx, container, time.Hour) })
	select {
	case err := <-first:
		k.Fatalf("the first StopContainer returned %v at once", err)
	case <-time.After(500 * time.Millisecond): // so that the first call is under way
	}
	k.promptly("both calls", func() {
		k.ok("StopContainer with a shorter grace", k.Runtime.StopContainer(k.ctx, container, time.Second))
		select {
		case err := <-first:
			k.ok("StopContainer with a long grace", err)
		case <-time.After(k.Patience):
			k.Error("the first StopContainer still waits when the container has exited")
		}
	})
	if c := k.see(spec.Pod, container); c.State != podmill.StateExited {
		k.Errorf("it is %v, want exited", c.State)
	}
}

func testCancelledStopThenShorterGrace(k *runtimeKit) {
	spec, _, container := k.launch(k.Commands.Stubborn(time.Hour))
	ctx, cancel := context.WithTimeout(k.ctx, 500*time.Millisecond)
	defer cancel()
	k.promptly("a StopContainer whose context ends", func() {
		k.fails("a StopContainer whose context ends", k.Runtime.StopContainer(ctx, container, time.Hour))
	})
	if c := k.see(spec.Pod, container); c.State != podmill.StateRunning {
		k.Errorf("it is %v after a StopContainer that was cancelled, long before its grace was over", c.State)
	}
	k.promptly("StopContainer with a shorter grace", func() {
		k.ok("StopContainer", k.Runtime.StopContainer(k.ctx, container, time.Second))
	})
	if c := k.see(spec.Pod, container); c.State != podmill.StateExited {
		k.Errorf("it is %v, want exited", c.State)
	}
}

func testStopSandboxStopsContainers(k *runtimeKit) {
	spec, sandbox, container := k.launch(k.Commands.Stubborn(time.Hour))
	k.promptly("StopSandbox", func() {
		k.ok("StopSandbox", k.Runtime.StopSandbox(k.ctx, sandbox))
	})
	if c := k.see(spec.Pod, container); c.State != podmill.StateExited {
		k.Errorf("it is %v when StopSandbox returns, want exited", c.State)
	}
	c := k.container(spec, sandbox, k.Commands.Exit(0))
	c.Attempt = 1
	_, err := k.Runtime.CreateContainer(k.ctx, c)
	k.fails("CreateContainer in a sandbox that is stopped", err)
}

func testCancelledContext(k *runtimeKit) {
	spec, sandbox, container := k.launch(k.Commands.Sleep(time.Hour))
	ctx, cancel := context.WithCancel(k.ctx)
	cancel()
	k.promptly("calls whose context has ended", func() {
		k.fails("ListPods", k.Runtime.ListPods(ctx, &podmill.Snapshot{}))
		_, err := k.Runtime.InspectPod(ctx, spec.Pod.UID)
		k.fails("InspectPod", err)
		_, err = k.Runtime.RunSandbox(ctx, again(spec, 1))
		k.fails("RunSandbox", err)
		k.fails("StopSandbox", k.Runtime.StopSandbox(ctx, sandbox))
		k.fails("RemoveSandbox", k.Runtime.RemoveSandbox(ctx, sandbox))
		k.fails("StopContainer", k.Runtime.StopContainer(ctx, container, time.Hour))
		k.fails("RemoveContainer", k.Runtime.RemoveContainer(ctx, container))
		_, err = k.Runtime.InspectImage(ctx, k.Image)
		k.fails("InspectImage", err)
		_, err = k.Runtime.ListImages(ctx)
		k.fails("ListImages", err)
		_, err = k.Runtime.Exec(ctx, container, k.Commands.Exit(0))
		k.fails("Exec", err)
	})
}

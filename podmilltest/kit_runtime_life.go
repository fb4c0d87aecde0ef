package podmilltest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/podmill/podmill"
)

func testLifecycle(k *runtimeKit) {
	spec, sandbox, container := k.launch(k.Commands.Sleep(time.Hour))
	seen := k.inspect(spec.Pod)
	if len(seen.Sandboxes) != 1 || seen.Sandboxes[0].ID != sandbox || !seen.Sandboxes[0].Ready {
		k.Errorf("sandboxes %+v, want %s and that it is ready", seen.Sandboxes, sandbox)
	}
	if seen.Namespace != spec.Pod.Namespace || seen.Name != spec.Pod.Name {
		k.Errorf("the pod is called %s/%s, want %s/%s", seen.Namespace, seen.Name, spec.Pod.Namespace, spec.Pod.Name)
	}
	c := k.see(spec.Pod, container)
	if c.SandboxID != sandbox || c.Name != "c" || c.State != podmill.StateRunning {
		k.Errorf("container %+v, want c running in %s", c, sandbox)
	}

	k.ok("StopContainer", k.Runtime.StopContainer(k.ctx, container, k.Patience))
	k.ok("RemoveContainer", k.Runtime.RemoveContainer(k.ctx, container))
	if seen := k.inspect(spec.Pod); len(seen.Containers) != 0 {
		k.Errorf("containers %+v after RemoveContainer, want none", seen.Containers)
	}
	k.ok("StopSandbox", k.Runtime.StopSandbox(k.ctx, sandbox))
	if seen := k.inspect(spec.Pod); len(seen.Sandboxes) != 1 || seen.Sandboxes[0].Ready {
		k.Errorf("sandboxes %+v after StopSandbox, want one that is not ready", seen.Sandboxes)
	}
	k.ok("RemoveSandbox", k.Runtime.RemoveSandbox(k.ctx, sandbox))
	if seen := k.inspect(spec.Pod); !seen.Empty() {
		k.Errorf("%+v after RemoveSandbox, want nothing", seen)
	}
}

func testStatesAndTimes(k *runtimeKit) {
	spec := k.pod()
	before := time.Now().Add(-time.Second) // a runtime may keep less than nanoseconds
	sandbox := k.runSandbox(spec)
	container := k.create(k.container(spec, sandbox, k.Commands.Sleep(time.Hour)))

	created := k.see(spec.Pod, container)
	if created.State != podmill.StateCreated || created.CreatedAt.Before(before) {
		k.Errorf("after CreateContainer it is %v since %v, want created since after %v", created.State, created.CreatedAt, before)
	}
	if !created.StartedAt.IsZero() || !created.FinishedAt.IsZero() {
		k.Errorf("after CreateContainer it started at %v and finished at %v, want zero times", created.StartedAt, created.FinishedAt)
	}
	time.Sleep(moment)
	k.ok("StartContainer", k.Runtime.StartContainer(k.ctx, container))
	running := k.see(spec.Pod, container)
	if running.State != podmill.StateRunning || running.StartedAt.Before(created.CreatedAt.Add(moment)) || !running.FinishedAt.IsZero() {
		k.Errorf("after StartContainer it is %v, started at %v, finished at %v", running.State, running.StartedAt, running.FinishedAt)
	}
	time.Sleep(moment)
	k.ok("StopContainer", k.Runtime.StopContainer(k.ctx, container, 0))
	exited := k.see(spec.Pod, container)
	if exited.State != podmill.StateExited || exited.FinishedAt.Before(running.StartedAt.Add(moment)) {
		k.Errorf("after StopContainer it is %v, finished at %v", exited.State, exited.FinishedAt)
	}
	if !exited.CreatedAt.Equal(created.CreatedAt) || !exited.StartedAt.Equal(running.StartedAt) {
		k.Errorf("its times moved: created at %v, then %v; started at %v, then %v",
			created.CreatedAt, exited.CreatedAt, running.StartedAt, exited.StartedAt)
	}
}

func testExitCode(k *runtimeKit) {
	spec := k.pod()
	sandbox := k.runSandbox(spec)
	for attempt, code := range []int{0, 3, 255} {
		c := k.container(spec, sandbox, k.Commands.Exit(code))
		c.Attempt = uint32(attempt)
		if seen := k.exited(spec.Pod, k.start(c)); seen.ExitCode != int32(code) {
			k.Errorf("exit code %d, want %d", seen.ExitCode, code)
		}
	}
}

func testStartsOnce(k *runtimeKit) {
	spec := k.pod()
	container := k.start(k.container(spec, k.runSandbox(spec), k.Commands.Exit(0)))
	k.exited(spec.Pod, container)
	k.fails("starting a container again", k.Runtime.StartContainer(k.ctx, container))
}

func testSandboxAttemptIsUnique(k *runtimeKit) {
	spec := k.pod()
	first := k.runSandbox(spec)
	_, err := k.Runtime.RunSandbox(k.ctx, spec)
	k.fails("running a second sandbox of one attempt", err)
	if seen := k.inspect(spec.Pod); len(seen.Sandboxes) != 1 || !seen.Sandboxes[0].Ready {
		k.Errorf("sandboxes %+v, want the first and that it is ready", seen.Sandboxes)
	}
	k.ok("StopSandbox", k.Runtime.StopSandbox(k.ctx, first))
	_, err = k.Runtime.RunSandbox(k.ctx, spec)
	k.fails("running a second sandbox while the first is there, stopped", err)
	k.ok("RemoveSandbox", k.Runtime.RemoveSandbox(k.ctx, first))
	if second := k.runSandbox(spec); second == first {
		k.Errorf("a new sandbox has the ID of an old one, %s", first)
	}
}

func testContainerAttemptIsUnique(k *runtimeKit) {
	spec := k.pod()
	sandbox := k.runSandbox(spec)
	c := k.container(spec, sandbox, k.Commands.Sleep(time.Hour))
	first := k.start(c)
	_, err := k.Runtime.CreateContainer(k.ctx, c)
	k.fails("creating a second container of one name and attempt", err)
	if seen := k.inspect(spec.Pod); len(seen.Containers) != 1 || seen.Containers[0].State != podmill.StateRunning {
		k.Errorf("containers %+v, want the first, running", seen.Containers)
	}
	k.ok("RemoveContainer", k.Runtime.RemoveContainer(k.ctx, first))
	if second := k.create(c); second == first {
		k.Errorf("a new container has the ID of an old one, %s", first)
	}
}

func testNewestAttemptFirst(k *runtimeKit) {
	spec := k.pod()
	for _, attempt := range []uint32{7, 3, 10} { // by number, whatever the clock says
		time.Sleep(moment)
		id := k.runSandbox(again(spec, attempt))
		if attempt == 10 {
			break
		}
		k.ok("StopSandbox", k.Runtime.StopSandbox(k.ctx, id))
	}
	seen := k.inspect(spec.Pod)
	sandbox := seen.Sandboxes[0].ID
	for _, attempt := range []uint32{5, 1, 12} {
		c := k.container(again(spec, 10), sandbox, k.Commands.Exit(0))
		c.Attempt = attempt
		k.create(c)
	}
	seen = k.inspect(spec.Pod)
	var got []string
	for _, s := range seen.Sandboxes {
		got = append(got, fmt.Sprint(s.Attempt))
	}
	for _, c := range seen.Containers {
		got = append(got, fmt.Sprint("c", c.Attempt))
	}
	if want := []string{"10", "7", "3", "c12", "c5", "c1"}; !slices.Equal(got, want) {
		k.Errorf("attempts in the order %v, want %v", got, want)
	}
}

// moment is between things that happen at different times.
const moment = 50 * time.Millisecond

// noID is an ID that nothing has.
const noID = "0000000000000000000000000000000000000000000000000000000000000000"

func testNotFound(k *runtimeKit) {
	spec := k.pod()
	if seen := k.inspect(spec.Pod); !seen.Empty() {
		k.Errorf("InspectPod of a pod that is not there returned %+v", seen)
	}
	sandbox := k.runSandbox(spec)
	check := func(what string, err error) {
		k.Helper()
		if !errors.Is(err, podmill.ErrNotFound) {
			k.Errorf("%s: error %v, want ErrNotFound", what, err)
		}
	}
	check("StartContainer", k.Runtime.StartContainer(k.ctx, noID))
	_, err := k.Runtime.Exec(k.ctx, noID, k.Commands.Exit(0))
	check("Exec", err)
	_, err = k.Runtime.InspectImage(k.ctx, k.Absent)
	check("InspectImage", err)
	c := k.container(spec, sandbox, k.Commands.Exit(0))
	c.Image = k.Absent
	_, err = k.Runtime.CreateContainer(k.ctx, c)
	check("CreateContainer of an image that is not there", err)
	if seen := k.inspect(spec.Pod); len(seen.Containers) != 0 {
		k.Errorf("a container is left that could not be created: %+v", seen.Containers)
	}
	c = k.container(spec, noID, k.Commands.Exit(0))
	_, err = k.Runtime.CreateContainer(k.ctx, c)
	k.fails("CreateContainer in a sandbox that is not there", err)
}

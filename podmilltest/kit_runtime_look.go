package podmilltest

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/podmill/podmill"
)

func testLabelsAndAnnotations(k *runtimeKit) {
	spec := k.pod()
	more := map[string]string{
		"example.com/empty": "",
		"example.com/json":  `{"a":["b",1],"ü":"\n"}`,
		"example.com/long":  strings.Repeat("long ", 2000),
		"example.com/lines": "one\ntwo\n",
	}
	maps.Copy(spec.Annotations, more)
	spec.Labels["app"] = "x"
	sandbox := k.runSandbox(spec)
	c := k.container(spec, sandbox, k.Commands.Exit(0))
	maps.Copy(c.Annotations, more)
	c.Annotations[podmill.AnnotationContainerHash] = "abc"
	c.Labels["app"] = "y"
	container := k.see(spec.Pod, k.create(c))
	if diff := gocmp.Diff(spec.Labels, k.inspect(spec.Pod).Sandboxes[0].Labels); diff != "" {
		k.Errorf("the sandbox's labels (-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff(spec.Annotations, k.inspect(spec.Pod).Sandboxes[0].Annotations); diff != "" {
		k.Errorf("the sandbox's annotations (-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff(c.Labels, container.Labels); diff != "" {
		k.Errorf("the container's labels (-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff(c.Annotations, container.Annotations); diff != "" {
		k.Errorf("the container's annotations (-want +got):\n%s", diff)
	}
}

func testAddresses(k *runtimeKit) {
	k.given("Network", k.Network)
	seen := map[string]bool{}
	for range 2 {
		spec := k.pod()
		k.runSandbox(spec)
		ips := k.inspect(spec.Pod).Sandboxes[0].IPs
		if len(ips) == 0 || ips[0] == "" || seen[ips[0]] {
			k.Errorf("addresses %q, want some, and other than %v", ips, seen)
			continue
		}
		seen[ips[0]] = true
	}
}

func testHostNetwork(k *runtimeKit) {
	spec := k.pod(HostNetwork())
	k.runSandbox(spec)
	if s := k.inspect(spec.Pod).Sandboxes[0]; !s.HostNetwork || len(s.IPs) != 0 {
		k.Errorf("sandbox %+v, want the host's network and no addresses", s)
	}
	other := k.pod()
	k.runSandbox(other)
	if s := k.inspect(other.Pod).Sandboxes[0]; s.HostNetwork {
		k.Errorf("sandbox %+v, want a network of its own", s)
	}
}

// items returns a pod's part of a listing, in an order that the listing need not have.
func items(snap *podmill.Snapshot, spec *podmill.SandboxSpec) []podmill.Item {
	var own []podmill.Item
	for _, i := range snap.Items {
		if i.Pod.UID == spec.Pod.UID {
			own = append(own, i)
		}
	}
	slices.SortFunc(own, func(a, b podmill.Item) int { return cmp.Compare(a.ID, b.ID) })
	return own
}

func testListAgreesWithInspect(k *runtimeKit) {
	spec := k.pod()
	k.ok("StopSandbox", k.Runtime.StopSandbox(k.ctx, k.runSandbox(spec)))
	sandbox := k.runSandbox(again(spec, 1))
	for attempt, line := range [][]string{k.Commands.Exit(0), k.Commands.Sleep(time.Hour), k.Commands.Sleep(time.Hour)} {
		c := k.container(again(spec, 1), sandbox, line)
		c.Attempt = uint32(attempt)
		switch attempt {
		case 0:
			k.exited(spec.Pod, k.start(c))
		case 1:
			k.start(c)
		case 2:
			k.create(c)
		}
	}
	var listed, inspected podmill.Snapshot
	k.ok("ListPods", k.Runtime.ListPods(k.ctx, &listed))
	seen := k.inspect(spec.Pod)
	for _, s := range seen.Sandboxes {
		state := podmill.StateExited
		if s.Ready {
			state = podmill.StateRunning
		}
		inspected.Items = append(inspected.Items, podmill.Item{Pod: seen.PodRef, ID: s.ID, Attempt: s.Attempt, State: state})
	}
	for _, c := range seen.Containers {
		inspected.Items = append(inspected.Items,
			podmill.Item{Pod: seen.PodRef, ID: c.ID, Container: c.Name, Attempt: c.Attempt, State: c.State})
	}
	if diff := gocmp.Diff(items(&inspected, spec), items(&listed, spec)); diff != "" || len(inspected.Items) != 5 {
		k.Errorf("a listing differs from an inspection of %d items (-inspected +listed):\n%s", len(inspected.Items), diff)
	}
}

func testSnapshotIsReplaced(k *runtimeKit) {
	spec, _, container := k.launch(k.Commands.Sleep(time.Hour))
	snap := &podmill.Snapshot{Items: []podmill.Item{{Pod: podmill.RefOf(spec.Pod), ID: "left over"}}}
	k.ok("ListPods", k.Runtime.ListPods(k.ctx, snap))
	first := slices.Clone(items(snap, spec))
	if len(first) != 2 {
		k.Fatalf("listed %+v, want the sandbox and its container", first)
	}
	k.ok("ListPods", k.Runtime.ListPods(k.ctx, snap))
	if diff := gocmp.Diff(first, items(snap, spec)); diff != "" {
		k.Errorf("a second listing into the same snapshot (-first +second):\n%s", diff)
	}
	k.ok("RemoveContainer", k.Runtime.RemoveContainer(k.ctx, container))
	k.ok("ListPods", k.Runtime.ListPods(k.ctx, snap))
	if left := items(snap, spec); len(left) != 1 || left[0].Container != "" {
		k.Errorf("listed %+v when the container is removed, want the sandbox", left)
	}
	// What was taken out of a snapshot stays as it was.
	if first[0].Pod != first[1].Pod || first[0].Pod != podmill.RefOf(spec.Pod) {
		k.Errorf("items that were copied from a snapshot changed: %+v", first)
	}
}

func testConcurrency(k *runtimeKit) {
	standing := k.pod()
	k.runSandbox(standing)
	stop := make(chan struct{})
	var pods, listers sync.WaitGroup
	listers.Go(func() { k.listUntil(stop, standing) })
	for range 4 {
		spec := k.pod()
		pods.Go(func() { k.oneOfMany(spec) })
	}
	pods.Wait()
	close(stop)
	listers.Wait()
}

// listUntil lists again and again. What stands throughout a listing must be in it, whatever comes and goes beside it.
func (k *runtimeKit) listUntil(stop <-chan struct{}, standing *podmill.SandboxSpec) {
	for snap := new(podmill.Snapshot); ; {
		select {
		case <-stop:
			return
		case <-time.After(10 * time.Millisecond):
		}
		if err := k.Runtime.ListPods(k.ctx, snap); err != nil {
			k.Errorf("ListPods: %v", err)
			return
		}
		if n := len(items(snap, standing)); n != 1 {
			k.Errorf("a listing has %d items of a pod with one sandbox", n)
			return
		}
	}
}

// oneOfMany runs a pod of two containers from its beginning to its end. It does not end the test from its goroutine.
func (k *runtimeKit) oneOfMany(spec *podmill.SandboxSpec) {
	sandbox, err := k.Runtime.RunSandbox(k.ctx, spec)
	if err != nil {
		k.Errorf("RunSandbox: %v", err)
		return
	}
	var containers sync.WaitGroup
	for attempt := range uint32(2) {
		c := k.container(spec, sandbox, k.Commands.Sleep(time.Hour))
		c.Attempt = attempt
		containers.Go(func() {
			id, err := k.Runtime.CreateContainer(k.ctx, c)
			if err == nil {
				err = k.Runtime.StartContainer(k.ctx, id)
			}
			time.Sleep(moment)
			if err == nil {
				err = k.Runtime.StopContainer(k.ctx, id, 0)
			}
			if err != nil {
				k.Errorf("a container among others: %v", err)
			}
		})
	}
	containers.Wait()
	seen, err := k.Runtime.InspectPod(k.ctx, spec.Pod.UID)
	if err != nil || len(seen.Sandboxes) != 1 || len(seen.Containers) != 2 {
		k.Errorf("InspectPod: %+v, %v, want a sandbox and two containers", seen, err)
	}
	if err := k.Runtime.RemoveSandbox(k.ctx, sandbox); err != nil {
		k.Errorf("RemoveSandbox: %v", err)
	}
}

package syncpod_test

import (
	"fmt"
	"time"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/syncpod"
)

// A plan says what to do for a pod, in order, and why.
func ExamplePlan() {
	pod := podmilltest.Pod("shop/cart", podmilltest.InitContainer("migrate", "migrate:3"), podmilltest.Container("web", "web:7"))
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

	fmt.Println("At first:")
	in := syncpod.Input{Pod: pod, Seen: &podmill.RuntimePod{}, SandboxWhy: "there is none"}
	first := syncpod.Plan(in, now)
	fmt.Println(first.String())

	fmt.Println("Later:")
	sandbox := podmill.Sandbox{ID: "s", Ready: true}
	in.Sandbox = &sandbox
	in.Seen = &podmill.RuntimePod{Sandboxes: []podmill.Sandbox{sandbox}, Containers: []podmill.Container{
		{ID: "1", Name: "migrate", SandboxID: "s", State: podmill.StateExited, FinishedAt: now},
	}}
	later := syncpod.Plan(in, now)
	fmt.Println(later.String())
	// Output:
	// At first:
	// run sandbox#0: there is none
	// start init migrate#0: it has not run yet
	// Later:
	// start app web#0: it has not run yet
}

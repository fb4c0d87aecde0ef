package syncpod

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
)

// settledPod is a pod of n containers that all run, each with a dead instance before it, and all that a plan is made of.
func settledPod(n int) Input {
	in := Input{
		Known: map[string]Record{}, Backoff: map[string]Backoff{}, Adopted: map[string]string{},
		Seen: &podmill.RuntimePod{Sandboxes: []podmill.Sandbox{{ID: "s0", Ready: true}}},
	}
	in.Sandbox = &in.Seen.Sandboxes[0]
	var mods []podmilltest.PodOption
	for i := range n {
		mods = append(mods, podmilltest.Container(fmt.Sprint("container-", i), "registry.example.com/team/image:1"))
	}
	in.Pod = podmilltest.Pod("shop/cart", mods...)
	for attempt := 1; attempt >= 0; attempt-- {
		for i := range in.Pod.Spec.Containers {
			c := &in.Pod.Spec.Containers[i]
			state := podmill.StateRunning
			if attempt == 0 {
				state = podmill.StateExited
			}
			in.Seen.Containers = append(in.Seen.Containers, podmill.Container{
				ID: fmt.Sprint(c.Name, "#", attempt), SandboxID: "s0", Name: c.Name, Attempt: uint32(attempt), State: state,
				Annotations: map[string]string{podmill.AnnotationContainerHash: hashOf(c)},
			})
			in.Known[c.Name] = Record{Attempt: 1, SandboxID: "s0"}
		}
	}
	return in
}

// BenchmarkPlanNothingToDo is the cost of a look at a pod that has all it wants, beside the least that any plan has to do: to find the
// newest instance of each container.
func BenchmarkPlanNothingToDo(b *testing.B) {
	in := settledPod(10)
	b.Run("baseline=find-newest", func(b *testing.B) {
		b.ReportAllocs()
		running := 0
		for b.Loop() {
			for i := range in.Pod.Spec.Containers {
				if c := in.Seen.Container(in.Pod.Spec.Containers[i].Name); c.State == podmill.StateRunning {
					running++
				}
			}
		}
		if running == 0 {
			b.Fatal("nothing runs")
		}
	})
	b.Run("plan", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if a := Plan(in, now); !a.Idle() || a.End != nil {
				b.Fatalf("there is something to do:\n%s", &a)
			}
		}
	})
	b.Run("plan-and-learn", func(b *testing.B) {
		m := &memory{
			known: in.Known, adopted: in.Adopted, failed: map[string]corev1.ContainerStateWaiting{}, ended: map[string]time.Time{},
			held: map[string]Held{}, unhealthy: map[string]bool{}, unhooked: map[string]bool{}, told: map[string]uint32{}, backoff: map[string]Backoff{},
		}
		b.ReportAllocs()
		for b.Loop() {
			m.learn(in.Pod, in.Seen, time.Now())
			a := Plan(in, time.Now())
			_ = m.waiting(in.Pod, in.Seen, &a, nil)
		}
	})
}

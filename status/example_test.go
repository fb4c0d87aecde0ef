package status_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/status"
)

// What is seen of a pod becomes its status, and is delivered. Nothing but plain structs is needed for that: behind them may be a runtime, or anything else.
func ExampleManager_Report() {
	m := status.New(status.FuncSink(func(_ context.Context, pod *corev1.Pod, s *corev1.PodStatus) error {
		c := s.ContainerStatuses[0]
		fmt.Println(pod.Name, "is", s.Phase, "and", c.Name, "has ended with", c.State.Terminated.ExitCode, c.State.Terminated.Reason)
		return nil
	}))
	pod := podmilltest.Pod("job", podmilltest.Restart(corev1.RestartPolicyNever), podmilltest.Container("work", "busybox:1"))
	m.Report(status.Input{Pod: pod, Seen: &podmill.RuntimePod{
		Sandboxes:  []podmill.Sandbox{{ID: "s", Ready: true}},
		Containers: []podmill.Container{{ID: "c", Name: "work", SandboxID: "s", State: podmill.StateRunning}},
	}})
	m.Report(status.Input{Pod: pod, Seen: &podmill.RuntimePod{
		Sandboxes:  []podmill.Sandbox{{ID: "s", Ready: true}},
		Containers: []podmill.Container{{ID: "c", Name: "work", SandboxID: "s", State: podmill.StateExited, ExitCode: 3}},
	}})
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // what is still waiting is delivered
	_ = m.Run(ctx)
	// Output:
	// job is Failed and work has ended with 3 Error
}

package agent_test

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/agent"
	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/status"
)

// A whole agent, over a runtime in memory: a pod is wanted, runs to its end, and that is told.
func Example() {
	root, err := os.MkdirTemp("", "agent")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	runtime := podmilltest.NewRuntime()
	defer runtime.Close()
	over := make(chan corev1.PodPhase, 10)
	sink := status.FuncSink(func(_ context.Context, _ *corev1.Pod, s *corev1.PodStatus) error {
		if s.Phase == corev1.PodSucceeded || s.Phase == corev1.PodFailed {
			over <- s.Phase
		}
		return nil
	})
	source := podmilltest.NewPodSource("file")
	a, err := agent.New(runtime, root, []podmill.PodSource{source}, agent.WithStatusSink(sink))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()

	source.Replace(podmilltest.Pod("shop/report", podmilltest.Restart(corev1.RestartPolicyNever), podmilltest.Container("report", "busybox:1", podmilltest.Runs("exit 3"))))
	fmt.Println(<-over)
	cancel()
	fmt.Println(<-ended)
	// Output:
	// Failed
	// <nil>
}

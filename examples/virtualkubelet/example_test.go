package main

import (
	"context"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/image"
	"github.com/podmill/podmill/pleg"
	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/podworkers"
	"github.com/podmill/podmill/probe"
	"github.com/podmill/podmill/sandbox"
	"github.com/podmill/podmill/status"
	"github.com/podmill/podmill/syncpod"
)

// blocks are podworkers, syncpod, probe and status joined by hand, as far as pods need them that have no volumes. An agent is this with the rest of the blocks, and it
// finds again what an earlier process has left.
type blocks struct {
	*podworkers.Workers
	parts []func(context.Context) error
}

func joinBlocks(runtime podmill.Runtime, sink podmill.StatusSink) (*blocks, error) {
	var workers *podworkers.Workers
	look := func(pod types.UID) { workers.Sync(pod) } // something has happened to it

	statuses := status.New(sink)
	probes := probe.New(runtime.Exec, look)
	eyes := pleg.New(runtime, look)
	hands, err := syncpod.New(syncpod.Config{
		Runtime:   runtime,
		Cache:     eyes,
		Sandboxes: sandbox.New(runtime),
		Images:    image.New(runtime),
		Reporter:  reporter{statuses},
	}, syncpod.WithProber(probes), syncpod.WithWake(look))
	if err != nil {
		return nil, err
	}
	workers = podworkers.New(hands)
	return &blocks{workers, []func(context.Context) error{statuses.Run, eyes.Run, probes.Run, workers.Run}}, nil
}

// reporter makes what a sync has seen a status, and has it delivered.
type reporter struct{ statuses *status.Manager }

func (r reporter) Report(_ context.Context, pod *corev1.Pod, seen *podmill.RuntimePod, p podmill.Progress) error {
	r.statuses.Report(status.Input{Pod: pod, Seen: seen, Progress: p, Runtime: "memory"})
	if p.Removed && pod.DeletionTimestamp != nil {
		r.statuses.Finish(pod)
	}
	return nil
}

// Run runs the parts until ctx ends.
func (b *blocks) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for _, run := range b.parts {
		all.Go(func() { _ = run(ctx) })
	}
	all.Wait()
	return nil
}

// The blocks apart: a pod with an init container and a sidecar runs to its end, and the sidecar ends with it.
func Example_blocks() {
	runtime := podmilltest.NewRuntime()
	defer runtime.Close()
	ended := make(chan corev1.PodPhase, 1)
	b, err := joinBlocks(runtime, status.FuncSink(func(_ context.Context, _ *corev1.Pod, s *corev1.PodStatus) error {
		if s.Phase == corev1.PodSucceeded || s.Phase == corev1.PodFailed {
			select {
			case ended <- s.Phase:
			default: // it is told again
			}
		}
		return nil
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = b.Run(ctx) })

	b.Update(podmilltest.Pod("shop/report", podmilltest.Restart(corev1.RestartPolicyNever),
		podmilltest.InitContainer("fetch", "busybox:1", podmilltest.Runs("exit 0")),
		podmilltest.Sidecar("proxy", "busybox:1", podmilltest.Runs("sleep inf")),
		podmilltest.Container("report", "busybox:1", podmilltest.Runs("exit 0"))))
	phase := <-ended
	cancel()
	running.Wait()
	for _, e := range runtime.Log().Entries() {
		if e.Op == podmilltest.OpStartContainer || e.Op == podmilltest.OpStopContainer {
			about, _, _ := strings.Cut(e.About, " grace=")
			fmt.Println(e.Op, about)
		}
	}
	fmt.Println(phase)
	// Output:
	// StartContainer shop/report fetch#0
	// StartContainer shop/report proxy#0
	// StartContainer shop/report report#0
	// StopContainer shop/report proxy#0
	// Succeeded
}

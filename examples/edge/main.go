// Edge is a node agent for a machine that is often on its own: its pods come from a URL or from an API server, and what it was told last is kept on disk. It boots
// and starts its pods with no way to either, and deletes nothing because somebody is silent. Statuses are in files, and go to the API server when there is one.
package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/agent"
	"github.com/podmill/podmill/checkpoint"
	"github.com/podmill/podmill/cri"
	"github.com/podmill/podmill/examples/internal/machine"
	"github.com/podmill/podmill/status"
	"github.com/podmill/podmill/syncpod"
)

func main() { machine.Main("edge", run) }

func run(ctx context.Context, args []string) error {
	c, err := parseFlags(args, os.Stderr)
	if err != nil {
		return err
	}
	ctx = logr.NewContext(ctx, c.Logger(os.Stderr))
	unlock, err := c.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	runtime, err := cri.Dial(ctx, c.Endpoint)
	if err != nil {
		return err
	}
	defer runtime.Close()
	parts, err := compose(ctx, c, runtime)
	if err != nil {
		return err
	}
	return machine.Together(ctx, append(parts, machine.GiveBack)...)
}

// compose joins the blocks. The parts that it returns end in this order.
func compose(ctx context.Context, c *config, runtime *cri.Client) ([]machine.Part, error) {
	kept, err := checkpoint.Open(filepath.Join(c.Root, "checkpoint"))
	if err != nil {
		return nil, err
	}
	files, err := status.NewFileSink(filepath.Join(c.Root, "status"))
	if err != nil {
		return nil, err
	}
	resources, err := c.Resources()
	if err != nil {
		return nil, err
	}
	cgroups, err := c.Cgroups(ctx, "", runtime)
	if err != nil {
		return nil, err
	}
	var a *agent.Agent // who takes no pod before it runs
	from, err := c.origin(kept, host{capacity: resources, runtime: runtime, agent: func() *agent.Agent { return a }})
	if err != nil {
		return nil, err
	}
	opts := slices.Concat(cgroups, c.Options(), from.opts, []agent.Option{
		agent.WithStatusSink(kept.Sink(&filed{FileSink: files, also: from.statuses})),
		agent.WithNode(syncpod.Node{IPs: c.NodeIPs, MemoryBytes: resources.Memory().Value(), Allocatable: resources}),
	})
	a, err = agent.New(runtime, c.Root, []podmill.PodSource{from.pods}, opts...)
	if err != nil {
		return nil, err
	}
	return append([]machine.Part{a.Run}, from.parts...), nil
}

// filed is a sink that has statuses in files, whether anybody else can be told of them or not.
type filed struct {
	*status.FileSink
	also podmill.StatusSink
}

func (f *filed) UpdateStatus(ctx context.Context, pod *corev1.Pod, status *corev1.PodStatus) error {
	return errors.Join(f.FileSink.UpdateStatus(ctx, pod, status), f.also.UpdateStatus(ctx, pod, status))
}

func (f *filed) FinishPod(ctx context.Context, pod *corev1.Pod) error {
	if err := f.also.FinishPod(ctx, pod); err != nil {
		return err
	}
	return f.FileSink.FinishPod(ctx, pod)
}

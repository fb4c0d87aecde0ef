// Clusterkubelet is a node of a Kubernetes cluster: the blocks of podmill in their default wiring, with an API server to take pods from and
// to tell their statuses, and the kubelet's flags. Pods of manifest files run beside those of the API, and are shown there.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/admission"
	"github.com/podmill/podmill/agent"
	"github.com/podmill/podmill/apiserver"
	"github.com/podmill/podmill/cgroup"
	"github.com/podmill/podmill/cri"
	"github.com/podmill/podmill/node"
	"github.com/podmill/podmill/probe"
	"github.com/podmill/podmill/probe/grpcprobe"
	"github.com/podmill/podmill/sandbox"
	"github.com/podmill/podmill/staticpod"
	"github.com/podmill/podmill/syncpod"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	switch err := run(ctx, os.Args[1:]); {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		_, _ = fmt.Fprintln(os.Stderr, "clusterkubelet:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	c, err := parseFlags(args, os.Stderr)
	if err != nil {
		return err
	}
	ctx = logr.NewContext(ctx, logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.Level(-c.verbosity)})))
	unlock, err := lock(c.root)
	if err != nil {
		return err
	}
	defer unlock()
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return fmt.Errorf("read --kubeconfig: %w", err)
	}
	client, err := apiserver.NewClient(config, c.nodeName)
	if err != nil {
		return err
	}
	runtime, err := cri.Dial(ctx, c.endpoint)
	if err != nil {
		return err
	}
	defer runtime.Close()
	parts, err := compose(ctx, c, client, runtime)
	if err != nil {
		return err
	}
	return together(ctx, parts)
}

// part is something that runs for as long as the agent does.
type part func(ctx context.Context) error

// compose joins the blocks. The parts that it returns end in this order.
func compose(ctx context.Context, c *config, client *apiserver.Client, runtime *cri.Client) ([]part, error) {
	m, err := machine(c.root)
	if err != nil {
		return nil, err
	}
	m.Capacity[corev1.ResourcePods] = c.maxPods
	var a *agent.Agent
	self := node.New(apiserver.NewNodes(client), c.nodeName, func(ctx context.Context) node.State { return c.state(ctx, m, runtime, a) },
		node.WithLabels(c.labels()), node.WithTaints(c.taints...))

	objects, statuses := apiserver.NewObjects(client), apiserver.NewStatusSink(client)
	mirrors := apiserver.NewMirrors(client, statuses, self.Known)
	pods := apiserver.NewPodSource(client, apiserver.WithMirrors(mirrors), apiserver.WithStatuses(statuses))
	sources := []podmill.PodSource{objects.Follow(pods)}
	if c.manifestPath != "" {
		check := staticpod.WithCheck(func(pod *corev1.Pod) field.ErrorList {
			return append(apiserver.ValidateStatic(pod), a.Refused(pod)...)
		})
		sources = append(sources, mirrors.Follow(staticpod.NewDirectory(c.manifestPath, c.nodeName, check)))
	}
	cgroups, err := newCgroups(ctx, c.cgroupRoot, runtime)
	if err != nil {
		return nil, err
	}
	a, err = agent.New(runtime, c.root, sources, append(cgroups,
		agent.WithStatusSink(mirrors),
		agent.WithObjects(objects),
		agent.WithEvents(apiserver.NewEventRecorder(client)),
		agent.WithAdmission(func() admission.Node { return c.admits(m, self) }),
		agent.WithLogRoot(c.logRoot),
		agent.WithNode(syncpod.Node{IPs: c.nodeIPs, MemoryBytes: m.Capacity.Memory().Value(), Allocatable: m.Capacity}),
		agent.WithProbeOptions(probe.WithGRPC(grpcprobe.Check)),
		agent.WithSandboxOptions(sandbox.WithResolvConf(c.resolvConf), sandbox.WithClusterDNS(c.clusterDNS...), sandbox.WithClusterDomain(c.domain)),
	)...)
	if err != nil {
		return nil, err
	}
	return []part{a.Run, mirrors.Run, self.Run}, nil
}

// together runs parts until ctx ends or one of them fails. Then they end one after another, each when the one before it has.
func together(ctx context.Context, parts []part) error {
	group, ctx := errgroup.WithContext(ctx)
	before := ctx
	for _, run := range parts {
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		context.AfterFunc(before, cancel)
		ended, end := context.WithCancel(context.WithoutCancel(ctx))
		group.Go(func() error {
			defer end()
			return run(own)
		})
		before = ended
	}
	return group.Wait()
}

// newCgroups gives the pods cgroups of their own below root, by the driver that the runtime uses.
func newCgroups(ctx context.Context, root string, runtime podmill.StatusReporter) ([]agent.Option, error) {
	if root == "" {
		return nil, nil
	}
	status, err := runtime.RuntimeStatus(ctx)
	if err != nil {
		return nil, err
	}
	driver := cgroup.Cgroupfs
	if status.CgroupDriver != "" {
		driver = cgroup.Driver(status.CgroupDriver)
	}
	cgroups, err := cgroup.New(root, cgroup.WithDriver(driver))
	if err != nil {
		return nil, err
	}
	return []agent.Option{agent.WithCgroups(cgroups)}, nil
}

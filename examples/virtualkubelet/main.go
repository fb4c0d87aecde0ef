// Virtualkubelet is a virtual-kubelet provider whose pods behave as a kubelet's: init containers, sidecars, probes, hooks and restart policies come from
// podmill's blocks. provider.go is what virtual-kubelet calls; containers.go has the pods run in a container runtime, in memory or containerd, and
// tasks.go without one. docs/virtual-kubelet.md goes through it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/agent"
	"github.com/podmill/podmill/apiserver"
	"github.com/podmill/podmill/cri"
	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/probe"
	"github.com/podmill/podmill/probe/grpcprobe"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	switch err := run(ctx, os.Args[1:], os.Stderr); {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		_, _ = fmt.Fprintln(os.Stderr, "virtualkubelet:", err)
		os.Exit(1)
	}
}

// Backend is [Workers] that run.
type Backend interface {
	Workers
	// Synced says that all pods that there are have been told.
	Synced()
	Run(ctx context.Context) error
}

func run(ctx context.Context, args []string, errOut io.Writer) error {
	flags := flag.NewFlagSet("virtualkubelet", flag.ContinueOnError)
	flags.SetOutput(errOut)
	kubeconfig := flags.String("kubeconfig", "", "the `file` that says where the API server is and who this node is there")
	name := flags.String("nodename", "virtual-kubelet", "the `name` of the node")
	kind := flags.String("provider", "memory", "what runs the pods: `memory`, containerd or tasks")
	endpoint := flags.String("container-runtime-endpoint", "unix:///run/containerd/containerd.sock", "the `endpoint` of containerd's CRI")
	root := flags.String("root-dir", "/var/lib/virtualkubelet", "the `directory` for volumes and logs")
	if err := flags.Parse(args); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return fmt.Errorf("read --kubeconfig: %w", err)
	}
	switch *kind {
	case "memory":
		runtime := podmilltest.NewRuntime()
		defer runtime.Close()
		return serve(ctx, config, *name, containers(runtime, *root))
	case "containerd":
		runtime, err := cri.Dial(ctx, *endpoint)
		if err != nil {
			return err
		}
		defer runtime.Close()
		return serve(ctx, config, *name, containers(runtime, *root))
	case "tasks":
		return serve(ctx, config, *name, func(_ *apiserver.Client, sink podmill.StatusSink) (Backend, error) { return NewTasks(sleep, sink), nil })
	}
	return fmt.Errorf("there is no --provider %q: it is memory, containerd or tasks", *kind)
}

// serve joins virtual-kubelet with a provider, until ctx ends.
func serve(ctx context.Context, config *rest.Config, name string, hire func(*apiserver.Client, podmill.StatusSink) (Backend, error)) error {
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	client, err := apiserver.NewClient(config, name)
	if err != nil {
		return err
	}
	virtual := NewVirtual(name, clientset)
	p, backend, err := NewProvider(cluster{virtual.pods.Lister(), apiserver.NewStatusSink(client)},
		func(sink podmill.StatusSink) (Backend, error) { return hire(client, sink) })
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return backend.Run(ctx) })
	group.Go(func() error { return virtual.Run(ctx, p, backend.Synced) })
	return group.Wait()
}

// containers has pods run in a container runtime, with what they refer to in the API: ConfigMaps, Secrets, tokens and Services.
func containers(runtime podmill.Runtime, root string) func(*apiserver.Client, podmill.StatusSink) (Backend, error) {
	return func(client *apiserver.Client, sink podmill.StatusSink) (Backend, error) {
		source, objects := NewSource(), apiserver.NewObjects(client)
		a, err := agent.New(runtime, root, []podmill.PodSource{objects.Follow(source)},
			agent.WithStatusSink(sink),
			agent.WithObjects(objects),
			agent.WithEvents(apiserver.NewEventRecorder(client)),
			agent.WithProbeOptions(probe.WithGRPC(grpcprobe.Check)))
		return Containers{source, a}, err
	}
}

// sleep is a task: its container's first argument says for how long. It has failed if it is not let sleep.
func sleep(ctx context.Context, _ *corev1.Pod, c *corev1.Container) (exitCode int32) {
	if len(c.Args) == 0 {
		return 2
	}
	d, err := time.ParseDuration(c.Args[0])
	if err != nil {
		return 2
	}
	select {
	case <-time.After(d):
		return 0
	case <-ctx.Done():
		return 143
	}
}

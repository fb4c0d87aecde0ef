package main

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/agent"
	"github.com/podmill/podmill/apiserver"
	"github.com/podmill/podmill/checkpoint"
	"github.com/podmill/podmill/event"
	"github.com/podmill/podmill/examples/internal/machine"
	"github.com/podmill/podmill/node"
	"github.com/podmill/podmill/staticpod"
	"github.com/podmill/podmill/status"
)

// origin is where pods come from, kept on disk, and who is told of them.
type origin struct {
	pods     podmill.PodSource
	statuses podmill.StatusSink
	opts     []agent.Option
	parts    []machine.Part // that run beside the agent
}

// host is what an origin is told of this node.
type host struct {
	capacity corev1.ResourceList
	runtime  podmill.StatusReporter
	agent    func() *agent.Agent // nil until it is there
}

func (c *config) origin(kept *checkpoint.Checkpoint, n host) (*origin, error) {
	if c.kubeconfig == "" {
		return c.fromURL(kept, n), nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read --kubeconfig: %w", err)
	}
	client, err := apiserver.NewClient(config, c.NodeName)
	if err != nil {
		return nil, err
	}
	return c.fromAPI(kept, client, n)
}

// fromURL takes the pods of a manifest. Nobody is told of them but who reads the files, and the events on standard output.
func (c *config) fromURL(kept *checkpoint.Checkpoint, n host) *origin {
	check := staticpod.WithCheck(func(pod *corev1.Pod) field.ErrorList { return n.agent().Refused(pod) })
	nobody := status.FuncSink(func(context.Context, *corev1.Pod, *corev1.PodStatus) error { return nil })
	return &origin{
		pods:     kept.Source(staticpod.NewURL(c.manifestURL, c.NodeName, staticpod.WithHeaders(c.headers), staticpod.WithPeriod(c.period), check)),
		statuses: nobody,
		opts:     []agent.Option{agent.WithEvents(event.JSONLines(os.Stdout))},
	}
}

// fromAPI takes the pods that a cluster has bound to this node, and is that node. What the cluster binds to it is not refused: a machine on its own does not know
// what the cluster has made of it.
func (c *config) fromAPI(kept *checkpoint.Checkpoint, client *apiserver.Client, n host) (*origin, error) {
	info, err := machine.Info()
	if err != nil {
		return nil, err
	}
	n.capacity[corev1.ResourcePods] = *resource.NewQuantity(110, resource.DecimalSI)
	is := node.State{Capacity: n.capacity, Allocatable: n.capacity, Info: info}
	self := node.New(apiserver.NewNodes(client), c.NodeName, func(ctx context.Context) node.State {
		return c.State(ctx, is, n.runtime, n.agent().Healthy())
	}, node.WithLabels(c.Labels()))
	objects, statuses := apiserver.NewObjects(client), apiserver.NewStatusSink(client)
	return &origin{
		// Objects are watched of pods that are kept, too: they are right as soon as the server is back.
		pods:     objects.Follow(kept.Source(apiserver.NewPodSource(client, apiserver.WithStatuses(statuses)))),
		statuses: statuses,
		opts:     []agent.Option{agent.WithObjects(kept.Objects(objects)), agent.WithEvents(apiserver.NewEventRecorder(client))},
		parts:    []machine.Part{self.Run},
	}, nil
}

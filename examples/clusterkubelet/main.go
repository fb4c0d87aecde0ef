// Clusterkubelet is a node of a Kubernetes cluster: the blocks of podmill in their default wiring, with an API server to take pods from and
// to tell their statuses, and the kubelet's flags. Pods of manifest files run beside those of the API, and are shown there.
package main

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/admission"
	"github.com/podmill/podmill/agent"
	"github.com/podmill/podmill/apiserver"
	"github.com/podmill/podmill/cri"
	"github.com/podmill/podmill/examples/internal/machine"
	"github.com/podmill/podmill/node"
	"github.com/podmill/podmill/server"
	"github.com/podmill/podmill/staticpod"
	"github.com/podmill/podmill/syncpod"
	"github.com/podmill/podmill/volume"
	"github.com/podmill/podmill/volume/csi"
)

func main() { machine.Main("clusterkubelet", run) }

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
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return fmt.Errorf("read --kubeconfig: %w", err)
	}
	client, err := apiserver.NewClient(config, c.NodeName)
	if err != nil {
		return err
	}
	if err := c.serving.listen(); err != nil {
		return err
	}
	runtime, err := cri.Dial(ctx, c.Endpoint)
	if err != nil {
		return err
	}
	defer runtime.Close()
	parts, err := compose(ctx, c, client, runtime)
	if err != nil {
		return err
	}
	return machine.Together(ctx, append(parts, machine.GiveBack)...)
}

// containers is a runtime that says how it is.
type containers interface {
	podmill.Runtime
	podmill.StatusReporter
}

// compose joins the blocks. The parts that it returns end in this order.
func compose(ctx context.Context, c *config, client *apiserver.Client, runtime containers) ([]machine.Part, error) {
	m, err := c.hardware()
	if err != nil {
		return nil, err
	}
	m.Port = c.serving.bound()
	var a *agent.Agent
	var drivers *csi.Drivers
	watch := &observer{
		config: c, hardware: m, runtime: runtime, healthy: func() error { return a.Healthy() },
		pressures: node.NewPressures(c.evictionHard, c.pressureTransition),
		inUse:     func(ctx context.Context) []corev1.UniqueVolumeName { return inUse(ctx, drivers) },
	}
	self := node.New(apiserver.NewNodes(client), c.NodeName, watch.state, node.WithLabels(c.labels()), node.WithTaints(c.taints...))

	objects, statuses := apiserver.NewObjects(client), apiserver.NewStatusSink(client)
	mirrors := apiserver.NewMirrors(client, statuses, self.Known)
	pods := apiserver.NewPodSource(client, apiserver.WithMirrors(mirrors), apiserver.WithStatuses(statuses))
	sources := []podmill.PodSource{objects.Follow(pods)}
	if c.manifestPath != "" {
		check := staticpod.WithCheck(func(pod *corev1.Pod) field.ErrorList {
			return append(apiserver.ValidateStatic(pod), a.Refused(pod)...)
		})
		sources = append(sources, objects.Follow(mirrors.Follow(staticpod.NewDirectory(c.manifestPath, c.NodeName, check)))) // their RuntimeClasses
	}
	cgroups, err := c.Cgroups(ctx, "", runtime)
	if err != nil {
		return nil, err
	}
	storage := apiserver.NewCSI(client)
	told := func(volume corev1.UniqueVolumeName) bool {
		known := self.Known()
		return known != nil && slices.Contains(known.Status.VolumesInUse, volume)
	}
	drivers, err = csi.New(c.Root, c.NodeName, csi.WithCluster(storage), csi.WithSecrets(objects), csi.WithServiceAccountTokens(objects), csi.WithInUse(self.Look, told))
	if err != nil {
		return nil, err
	}
	a, err = agent.New(runtime, c.Root, sources, append(append(cgroups, c.Options()...),
		agent.WithStatusSink(mirrors),
		agent.WithObjects(objects),
		agent.WithVolumeOptions(volume.WithPlugins(drivers)),
		agent.WithEvents(apiserver.NewEventRecorder(client)),
		agent.WithAdmission(func() admission.Node { return c.admits(m, self, drivers, watch.down.Load()) }),
		agent.WithNode(syncpod.Node{IPs: c.NodeIPs, MemoryBytes: m.Capacity.Memory().Value(), Allocatable: m.Capacity}),
	)...)
	if err != nil {
		return nil, err
	}
	answer, err := c.serving.serve(c.NodeName, server.Guard(c.NodeName, apiserver.NewReviews(client), server.New(a)))
	if err != nil {
		return nil, err
	}
	return []machine.Part{answer, c.serving.recertify(c.NodeName), c.shutdown(watch, self, a), a.Run, mirrors.Run, drivers.Run, storage.Run, self.Run}, nil
}

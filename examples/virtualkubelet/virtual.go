package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	vknode "github.com/virtual-kubelet/virtual-kubelet/node"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/podmill/podmill/apiserver"
	"github.com/podmill/podmill/node"
)

// Virtual is virtual-kubelet's half: a node of a cluster, and its pods.
type Virtual struct {
	name   string
	client kubernetes.Interface
	pods   coreinformers.PodInformer
}

// NewVirtual returns the virtual node of that name.
func NewVirtual(name string, client kubernetes.Interface) *Virtual {
	mine := fields.OneTermEqualSelector("spec.nodeName", name).String()
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = mine }))
	return &Virtual{name: name, client: client, pods: factory.Core().V1().Pods()}
}

// Run has a provider run the node's pods, and keeps the node, until ctx ends. synced is called when the provider has been told of all pods that there are.
func (v *Virtual) Run(ctx context.Context, p *Provider, synced func()) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		v.pods.Informer().RunWithContext(ctx)
		return nil
	})
	if !cache.WaitForCacheSync(ctx.Done(), v.pods.Informer().HasSynced) {
		return group.Wait()
	}
	// What is here already is told before virtual-kubelet begins, so that what is not can be cleaned up.
	there, err := v.pods.Lister().List(labels.Everything())
	if err != nil {
		return err
	}
	for _, pod := range there {
		if err := p.CreatePod(ctx, pod); err != nil {
			return err
		}
	}
	synced()

	events := record.NewBroadcaster()
	events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: v.client.CoreV1().Events("")})
	defer events.Shutdown()
	pods, err := v.podController(p, events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "virtual-kubelet", Host: v.name}))
	if err != nil {
		return err
	}
	self, err := vknode.NewNodeController(vknode.NaiveNodeProvider{}, v.node(), v.client.CoreV1().Nodes(),
		vknode.WithNodeEnableLeaseV1(v.client.CoordinationV1().Leases(corev1.NamespaceNodeLease), 0))
	if err != nil {
		return fmt.Errorf("make virtual-kubelet's node controller: %w", err)
	}
	group.Go(func() error { return pods.Run(ctx, runtime.NumCPU()) })
	group.Go(func() error { return self.Run(ctx) })
	if err := group.Wait(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// podController returns virtual-kubelet's controller of pods. It is given no ConfigMaps, Secrets and Services to make environments of: podmill sees to that, and so
// nobody has to watch those of the whole cluster.
func (v *Virtual) podController(p *Provider, events record.EventRecorder) (*vknode.PodController, error) {
	unused := informers.NewSharedInformerFactory(v.client, 0).Core().V1()
	c, err := vknode.NewPodController(vknode.PodControllerConfig{
		PodClient: v.client.CoreV1(), PodInformer: v.pods, EventRecorder: events, Provider: p, SkipDownwardAPIResolution: true,
		ConfigMapInformer: unused.ConfigMaps(), SecretInformer: unused.Secrets(), ServiceInformer: unused.Services(),
	})
	if err != nil {
		return nil, fmt.Errorf("make virtual-kubelet's pod controller: %w", err)
	}
	return c, nil
}

// node is the Node, as it is registered. Its conditions have the kubelet's words; a taint keeps pods away that do not ask for it.
func (v *Virtual) node() *corev1.Node {
	much := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: v.name, Labels: map[string]string{
			"type": "virtual-kubelet", corev1.LabelHostname: v.name, corev1.LabelOSStable: runtime.GOOS, corev1.LabelArchStable: runtime.GOARCH,
		}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "virtual-kubelet.io/provider", Value: "podmill", Effect: corev1.TaintEffectNoSchedule}}},
		Status: *node.Status(&corev1.NodeStatus{}, node.State{
			Capacity: much, Allocatable: much,
			Info: corev1.NodeSystemInfo{OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH, KubeletVersion: "v1.37.0-podmill"},
			Conditions: []corev1.NodeCondition{
				node.Pressure(corev1.NodeMemoryPressure, false), node.Pressure(corev1.NodeDiskPressure, false),
				node.Pressure(corev1.NodePIDPressure, false), node.Ready(),
			},
		}, time.Now()),
	}
}

// cluster is what a provider asks the API server: what virtual-kubelet watches, and a deletion as podmill confirms it.
type cluster struct {
	pods corev1listers.PodLister
	sink *apiserver.StatusSink
}

func (c cluster) Pod(namespace, name string) *corev1.Pod {
	pod, err := c.pods.Pods(namespace).Get(name)
	if err != nil {
		return nil // it is not there; a cache has no other error
	}
	return pod
}

func (c cluster) Confirm(ctx context.Context, pod *corev1.Pod) error {
	return c.sink.FinishPod(ctx, pod)
}

package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/admission"
	"github.com/podmill/podmill/image"
	"github.com/podmill/podmill/logs"
	"github.com/podmill/podmill/pleg"
	"github.com/podmill/podmill/podspec"
	"github.com/podmill/podmill/podworkers"
	"github.com/podmill/podmill/probe"
	"github.com/podmill/podmill/sandbox"
	"github.com/podmill/podmill/status"
	"github.com/podmill/podmill/syncloop"
	"github.com/podmill/podmill/syncpod"
	"github.com/podmill/podmill/userns"
	"github.com/podmill/podmill/volume"
)

// Agent is a node agent: the blocks, joined.
type Agent struct {
	opts     options
	root     string
	runtime  podmill.Runtime
	state    *runtimeState
	statuses *status.Manager
	inbox    *syncloop.Inbox
	eyes     *pleg.PLEG
	hands    *syncpod.Syncer
	probes   *probe.Manager
	workers  *podworkers.Workers
	loop     *syncloop.Loop
	features podmill.Features
	checker  *podspec.Checker
	cleaners []syncloop.Cleaner
	changed  func(podmill.ObjectRef) // tells volumes that wait for an object; may be nil
	logs     *logs.Rotator           // nil where the runtime cannot open logs anew
	finished chan struct{}           // holds one token when a pod has finished
	freed    chan struct{}           // likewise when one may have given back what it had

	admission *admission.Gate // nil where all pods are taken
}

// New returns an agent that runs the pods of sources in a runtime, and keeps what is its own below root, an absolute path. It
// starts nothing.
func New(runtime podmill.Runtime, root string, sources []podmill.PodSource, opts ...Option) (*Agent, error) {
	if !filepath.IsAbs(root) {
		return nil, fmt.Errorf("root directory %q is not an absolute path", root)
	}
	a := &Agent{root: root, runtime: runtime, inbox: syncloop.NewInbox(), finished: make(chan struct{}, 1), freed: make(chan struct{}, 1)}
	a.opts.logRoot = filepath.Join(root, "log")
	for _, opt := range opts {
		opt(&a.opts)
	}
	sources, err := a.keepStatuses(sources)
	if err != nil {
		return nil, err
	}
	if err := a.wire(); err != nil {
		return nil, err
	}
	a.loop = syncloop.New(a.gate(), a.inbox, sources, append(a.opts.loop,
		syncloop.WithHousekeeping(a.eyes.Pods, a.cleaners...), syncloop.WithOwn(a.owns), syncloop.WithObserver(a.opts.observers.SyncLoop))...)
	return a, nil
}

// keepStatuses chooses the sink. A sink of files remembers what the pods of the sources were before a restart.
func (a *Agent) keepStatuses(sources []podmill.PodSource) ([]podmill.PodSource, error) {
	if a.opts.sink == nil {
		files, err := status.NewFileSink(filepath.Join(a.root, "status"))
		if err != nil {
			return nil, err
		}
		a.opts.sink = files
	}
	a.statuses = status.New(a.opts.sink, status.WithObserver(a.opts.observers.Status))
	a.cleaners = append(a.cleaners, a.statuses)
	if c, ok := podmill.As[syncloop.Cleaner](a.opts.sink); ok {
		a.cleaners = append(a.cleaners, c)
	}
	files, ok := a.opts.sink.(*status.FileSink)
	if !ok {
		return sources, nil
	}
	known, _ := files.Load() // what cannot be read is not known; the clean-up names and removes it
	remembered := make([]podmill.PodSource, len(sources))
	for i, source := range sources {
		remembered[i] = &remembering{PodSource: source, statuses: known}
	}
	return remembered, nil
}

// wire makes the blocks and joins them.
func (a *Agent) wire() error {
	o := &a.opts
	a.state = newRuntimeState(a.runtime)
	wanted := func(uid types.UID) bool {
		_, ok := a.loop.Pod(uid)
		return ok
	}
	report := &reporter{statuses: a.statuses, runtime: a.state, hostIPs: o.node.IPs, wanted: wanted, ended: map[types.UID]bool{}}
	a.eyes = pleg.New(a.runtime, a.inbox.Put, append(o.pleg, pleg.WithObserver(o.observers.PLEG))...)
	sandboxes := sandbox.New(a.runtime, append(a.sandboxOptions(), o.sandbox...)...)
	images := image.New(a.runtime, append(o.image, image.WithSecrets(o.objects), image.WithEvents(o.events), image.WithObserver(o.observers.Image))...)
	volumes, err := a.mounter()
	if err != nil {
		return err
	}
	users, err := userns.New(a.root, o.users...)
	if err != nil {
		return err
	}
	a.probes = a.prober()
	a.hands, err = syncpod.New(syncpod.Config{
		Runtime: a.runtime, Cache: a.eyes, Sandboxes: sandboxes, Images: images, Reporter: report,
	}, append(a.handOptions(volumes, users), o.hands...)...)
	if err != nil {
		return err
	}
	if o.cgroups != nil {
		a.cleaners = append(a.cleaners, a.afterALook(o.cgroups))
	}
	a.features = join(a.runtime, volumes, a.hands, a.probes, sandboxes, images)
	a.checker = podspec.NewChecker(a.features)
	a.workers = podworkers.New(a.hands, append(o.workers, podworkers.WithObserver(a.watchWorkers(o.observers.Workers)))...)
	if reopener, ok := podmill.As[podmill.LogReopener](a.runtime); ok {
		a.logs = logs.New(filepath.Join(o.logRoot, "pods"), a.eyes.Pods, reopener)
	}
	ghosts := cleaner(func(ctx context.Context, _ func(types.UID) bool) error {
		pods, _ := a.eyes.Pods()
		return sandboxes.Collect(ctx, slices.DeleteFunc(pods, func(pod *podmill.RuntimePod) bool { return !a.owns(pod) }))
	})
	a.cleaners = append(a.cleaners, a.afterALook(a.hands), a.probes, report, ghosts)
	return nil
}

func (a *Agent) handOptions(volumes podmill.VolumeMounter, users *userns.Manager) []syncpod.Option {
	o := &a.opts
	opts := []syncpod.Option{
		syncpod.WithDirectories(a.root, o.logRoot), syncpod.WithVolumes(volumes), syncpod.WithEvents(o.events),
		syncpod.WithNetworkReady(a.state.networkReady), syncpod.WithWake(a.inbox.Put), syncpod.WithNode(o.node),
		syncpod.WithProber(a.probes), syncpod.WithObserver(o.observers.SyncPod), syncpod.WithObjects(o.objects, o.objects),
		syncpod.WithRefusal(a.refusal), syncpod.WithUserNamespaces(users), syncpod.WithRoom(a.room),
	}
	if services, ok := podmill.As[podmill.Services](o.objects); ok {
		opts = append(opts, syncpod.WithServices(services))
	}
	if classes, ok := podmill.As[podmill.RuntimeClasses](o.objects); ok {
		opts = append(opts, syncpod.WithOverhead(func(ctx context.Context, pod *corev1.Pod) (corev1.ResourceList, error) {
			return overhead(ctx, classes, pod)
		}))
	}
	if o.cgroups != nil {
		opts = append(opts, syncpod.WithCgroups(o.cgroups))
	}
	return opts
}

func (a *Agent) sandboxOptions() []sandbox.Option {
	o := &a.opts
	opts := []sandbox.Option{
		sandbox.WithOwner(a.root), sandbox.WithEvents(o.events), sandbox.WithObserver(a.watchSandboxes(o.observers.Sandbox)),
		sandbox.WithNeighbours(func() []*corev1.Pod { pods, _ := a.Pods(); return pods }),
	}
	if classes, ok := podmill.As[podmill.RuntimeClasses](o.objects); ok {
		opts = append(opts, sandbox.WithRuntimeClasses(func(name string) (string, error) {
			class, err := classes.RuntimeClass(context.Background(), name)
			if err != nil {
				return "", err
			}
			return class.Handler, nil
		}))
	}
	return opts
}

// prober returns who probes containers. What it finds has the pod synced at once.
func (a *Agent) prober() *probe.Manager {
	opts := []probe.Option{probe.WithEvents(a.opts.events), probe.WithObserver(a.opts.observers.Probe)}
	if ips := a.opts.node.IPs; len(ips) > 0 {
		opts = append(opts, probe.WithHostIP(ips[0]))
	}
	return probe.New(a.runtime.Exec, a.inbox.Put, append(opts, a.opts.probe...)...)
}

// mounter returns who makes volumes ready, and has it cleaned up after.
func (a *Agent) mounter() (podmill.VolumeMounter, error) {
	o := &a.opts
	if o.volumes == nil {
		how := []volume.Option{
			volume.WithObjects(o.objects, o.objects), volume.WithEvents(o.events), volume.WithObserver(o.observers.Volume),
			volume.WithAllocatable(func() corev1.ResourceList { return o.node.Allocatable }),
		}
		if o.admission != nil {
			how = append(how, volume.WithNodeLabels(func() map[string]string { return o.admission().Labels }))
		}
		how = append(how, providers(o.objects)...)
		volumes, err := volume.New(a.root, append(how, o.volume...)...)
		if err != nil {
			return nil, err
		}
		o.volumes, a.changed = volumes, volumes.Changed
	}
	if c, ok := o.volumes.(syncloop.Cleaner); ok {
		a.cleaners = append(a.cleaners, a.afterALook(c))
	}
	return o.volumes, nil
}

// providers returns the options for what objects have beside ConfigMaps and Secrets.
func providers(objects Objects) []volume.Option {
	var opts []volume.Option
	if claims, ok := podmill.As[podmill.Claims](objects); ok {
		opts = append(opts, volume.WithClaims(claims))
	}
	if tokens, ok := podmill.As[podmill.ServiceAccountTokens](objects); ok {
		opts = append(opts, volume.WithServiceAccountTokens(tokens))
	}
	if bundles, ok := podmill.As[podmill.TrustBundles](objects); ok {
		opts = append(opts, volume.WithTrustBundles(bundles))
	}
	if certificates, ok := podmill.As[podmill.PodCertificates](objects); ok {
		opts = append(opts, volume.WithPodCertificates(certificates))
	}
	return opts
}

// owns reports that a pod in the runtime was made by this agent, or one before it with the same root. Others are somebody else's: a kubelet's, another
// agent's, a person's. Of a pod that was listed and not inspected yet it is not known.
func (a *Agent) owns(pod *podmill.RuntimePod) bool {
	return slices.ContainsFunc(pod.Sandboxes, func(s podmill.Sandbox) bool { return s.Labels[podmill.LabelOwner] == a.root })
}

// watchWorkers tells who waits for pods to finish, and the observer o.
func (a *Agent) watchWorkers(o podworkers.Observer) podworkers.Observer {
	told := o.StateChanged
	o.StateChanged = func(pod podmill.PodRef, from, to podworkers.State) {
		if to == podworkers.Finished {
			put(a.finished)
		}
		if to == podworkers.Finished || to == podworkers.Terminated {
			put(a.freed)
		}
		if told != nil {
			told(pod, from, to)
		}
	}
	return o
}

// watchSandboxes has the runtime asked for its network again when a sandbox has failed, and tells the observer o.
func (a *Agent) watchSandboxes(o sandbox.Observer) sandbox.Observer {
	told := o.Ran
	o.Ran = func(pod podmill.PodRef, handler string, took time.Duration, err error) {
		if err != nil {
			a.state.doubt()
		}
		if told != nil {
			told(pod, handler, took, err)
		}
	}
	return o
}

// put puts a token where there is none.
func put(tokens chan struct{}) {
	select {
	case tokens <- struct{}{}:
	default:
	}
}

// Pods returns all pods with their newest statuses: those that are wanted, and those on their way out. They are shared and read-only, and one of which nothing has changed
// is the same object as before. synced says that every source has been heard.
func (a *Agent) Pods() (pods []*corev1.Pod, synced bool) {
	wanted, synced := a.loop.Pods()
	pods = a.statuses.Pods()
	for _, pod := range wanted {
		if _, ok := a.statuses.Status(pod.UID); !ok {
			pods = append(pods, pod)
		}
	}
	return pods, synced
}

// Kill ends a pod for the node's sake, as an eviction or the node's shutdown does: it stays ended, whatever its source wants. The channel is closed when none of its
// containers runs any more, for which Run has to run. See [podworkers.Workers.Kill].
func (a *Agent) Kill(pod types.UID, k podmill.Kill) <-chan struct{} { return a.workers.Kill(pod, k) }

// Healthy returns what is wrong with the agent, nil if nothing is.
func (a *Agent) Healthy() error { return errors.Join(a.eyes.Healthy(), a.loop.Healthy()) }

// watchObjects has pods synced again when an object changes that they refer to.
func (a *Agent) watchObjects(ctx context.Context) error {
	watcher, ok := podmill.As[podmill.ObjectWatcher](a.opts.objects)
	if !ok {
		return nil
	}
	err := watcher.WatchObjects(ctx, func(ref podmill.ObjectRef) {
		if a.changed != nil {
			a.changed(ref)
		}
		pods, _ := a.loop.Pods()
		for _, pod := range pods {
			if refers(pod, ref) {
				a.inbox.Put(pod.UID)
			}
		}
	})
	if ctx.Err() == nil && err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "objects are not watched any more; pods see changes with their next resync")
	}
	return nil
}

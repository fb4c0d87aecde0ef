package syncpod

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// Option changes a default of a [Syncer].
type Option func(*options)

type options struct {
	root, logRoot string
	volumes       podmill.VolumeMounter
	cgroups       Cgroups
	users         UserNamespaces
	devices       func(ctx context.Context, pod *corev1.Pod, c *corev1.Container) (*podmill.DeviceAllotment, error)
	configMaps    podmill.ConfigMaps
	secrets       podmill.Secrets
	services      podmill.Services
	events        podmill.EventRecorder
	networkReady  func(ctx context.Context) error
	wake          func(pod types.UID)
	prober        Prober
	refused       func(pod *corev1.Pod) string
	room          func(has, wants *corev1.Pod) (reason, message string)
	overhead      func(ctx context.Context, pod *corev1.Pod) (corev1.ResourceList, error)
	maxBackoff    time.Duration
	node          Node
	observer      Observer
}

// WithDirectories gives each pod a directory below root, as the kubelet does below /var/lib/kubelet, and its containers logs below
// logs, as below /var/log. Both are absolute. Without it nothing is written to disk: containers have no logs and no /etc/hosts of their own, and a
// pod that is ending gets its whole grace period again after a restart of the agent.
func WithDirectories(root, logs string) Option {
	return func(o *options) { o.root, o.logRoot = root, logs }
}

// WithVolumes says who makes volumes ready. Without it a container that mounts a volume does not start.
func WithVolumes(volumes podmill.VolumeMounter) Option {
	return func(o *options) { o.volumes = volumes }
}

// WithCgroups says who keeps the cgroups of pods. Without it the runtime chooses them.
func WithCgroups(cgroups Cgroups) Option { return func(o *options) { o.cgroups = cgroups } }

// WithUserNamespaces says who allots the IDs of pods that have hostUsers: false. Without it the runtime refuses them.
func WithUserNamespaces(users UserNamespaces) Option {
	return func(o *options) { o.users = users }
}

// WithDevices says what a container is given of the devices among its resources, those with a name such as vendor.com/device; nil is nothing. The func is called for each
// start, gives the same container the same devices, and takes them back by itself when the pod is gone. Without it such a container does not start.
func WithDevices(allot func(ctx context.Context, pod *corev1.Pod, c *corev1.Container) (*podmill.DeviceAllotment, error)) Option {
	return func(o *options) { o.devices = allot }
}

// WithObjects says where the ConfigMaps and Secrets are that environments refer to. Without them a container that refers to
// one does not start.
func WithObjects(configMaps podmill.ConfigMaps, secrets podmill.Secrets) Option {
	return func(o *options) { o.configMaps, o.secrets = configMaps, secrets }
}

// WithServices says where the Services are that containers are told of; without it they are told of none.
func WithServices(services podmill.Services) Option {
	return func(o *options) { o.services = services }
}

// WithEvents says who is told what people should know; without it nobody is.
func WithEvents(events podmill.EventRecorder) Option { return func(o *options) { o.events = events } }

// WithNetworkReady makes pods with a network of their own wait while ready returns an error, which says why.
func WithNetworkReady(ready func(ctx context.Context) error) Option {
	return func(o *options) { o.networkReady = ready }
}

// WithWake says who is called, from a goroutine of its own, when a pod is to be synced again because a back-off is over, or a volume wants to be brought up
// to date; the func returns at once. Without it the pod waits for its next sync of another cause.
func WithWake(wake func(pod types.UID)) Option { return func(o *options) { o.wake = wake } }

// WithProber says who probes containers. Without it they are started and ready as soon as they run, and nothing but their own end
// restarts them.
func WithProber(prober Prober) Option { return func(o *options) { o.prober = prober } }

// WithMaxRestartDelay is the longest that a container which ends again and again has to wait, 1 s to 5 min, as the kubelet's
// crashLoopBackOff.maxContainerRestartPeriod. The default is 5 min. The first wait is 10 s, or d where that is shorter.
func WithMaxRestartDelay(d time.Duration) Option { return func(o *options) { o.maxBackoff = d } }

// WithRefusal says why a pod cannot be had here as its spec wants it, and nothing if it can. The func is pure and returns at once. Nothing is started of a
// pod that is refused: its containers wait with the reason CreateContainerConfigError.
func WithRefusal(refused func(pod *corev1.Pod) string) Option {
	return func(o *options) { o.refused = refused }
}

// WithRoom says whether a pod can have the CPU and memory that it wants in place of what it has, and if not why: the reason [corev1.PodReasonDeferred] where
// there is no room now, [corev1.PodReasonInfeasible] where there never will be. The func returns at once, is called concurrently, and is asked with each sync until it
// gives no reason; then the pod is allocated what it wants. Without it there is always room.
func WithRoom(room func(has, wants *corev1.Pod) (reason, message string)) Option {
	return func(o *options) { o.room = room }
}

// WithOverhead says what a pod's sandbox needs beside its containers where its spec does not say that, as an API server would have it by the pod's RuntimeClass; nil is
// nothing. An error ends the sync, which is tried again: a pod that runs must not shrink because nobody could be asked. Without it a pod without spec.overhead has none.
func WithOverhead(overhead func(ctx context.Context, pod *corev1.Pod) (corev1.ResourceList, error)) Option {
	return func(o *options) { o.overhead = overhead }
}

// Node is what containers are told, and judged by, of the node that they run on.
type Node struct {
	// IPs are the node's addresses, the primary one first: status.hostIP in an environment.
	IPs []string
	// MemoryBytes is the node's memory, by which a container's share of it sets its OOM score. Zero is unknown.
	MemoryBytes int64
	// Allocatable is what the node has for pods: a limit in an environment of a container that has none.
	Allocatable corev1.ResourceList
}

// WithNode describes the node.
func WithNode(node Node) Option { return func(o *options) { o.node = node } }

// WithObserver says who is told of what happens.
func WithObserver(observer Observer) Option { return func(o *options) { o.observer = observer } }

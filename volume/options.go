package volume

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/volume/internal/hostdir"
	"github.com/podmill/podmill/volume/internal/issued"
)

// Option changes a default of a [Manager].
type Option func(*options)

type options struct {
	objects     objects
	claims      podmill.Claims
	nodeLabels  func() map[string]string
	issuers     issuers
	plugins     []Plugin
	events      podmill.EventRecorder
	observer    Observer
	allocatable func() corev1.ResourceList
	inMemory    bool
	patience    time.Duration
}

func newOptions(opts []Option) options {
	o := options{
		issuers:     issuers{issued: &issued.Credentials[credentialID, map[string][]byte]{}},
		allocatable: func() corev1.ResourceList { return nil },
		nodeLabels:  func() map[string]string { return nil },
		inMemory:    hostdir.HasMounts,
		patience:    2*time.Minute + 3*time.Second,
	}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// WithObjects says who has the ConfigMaps and Secrets that volumes are made of. Each may be nil; then such volumes are refused.
func WithObjects(configMaps podmill.ConfigMaps, secrets podmill.Secrets) Option {
	return func(o *options) { o.objects = objects{configMaps, secrets} }
}

// WithClaims says who has the claims that volumes are, and what they are bound to: local PersistentVolumes, hostPaths, and what plugins make. Without it
// persistentVolumeClaim and ephemeral volumes are refused.
func WithClaims(claims podmill.Claims) Option { return func(o *options) { o.claims = claims } }

// WithNodeLabels says what labels the node has, by which a PersistentVolume with a node affinity, as local ones have, is for this node or not. The func returns at
// once. Without it none of those is.
func WithNodeLabels(labels func() map[string]string) Option {
	return func(o *options) { o.nodeLabels = labels }
}

// WithServiceAccountTokens says who makes the tokens that projected volumes hold. They are renewed at four fifths of their life, by the MountVolumes for which the
// volume asks then ([podmill.Volume].Renew); while a token is still good that holds the pod for a few seconds at most, and is tried again after a pause. Without it such
// sources are refused.
func WithServiceAccountTokens(tokens podmill.ServiceAccountTokens) Option {
	return func(o *options) { o.issuers.tokens = tokens }
}

// WithTrustBundles says who has the ClusterTrustBundles that projected volumes hold; without it such sources are refused.
func WithTrustBundles(bundles podmill.TrustBundles) Option {
	return func(o *options) { o.issuers.bundles = bundles }
}

// WithPodCertificates says who makes the certificates that projected volumes hold; without it such sources are refused.
func WithPodCertificates(certificates podmill.PodCertificates) Option {
	return func(o *options) { o.issuers.certificates = certificates }
}

// WithPlugins adds plugins for more kinds of volumes. They are asked before the built-in ones, in this order.
func WithPlugins(plugins ...Plugin) Option {
	return func(o *options) { o.plugins = append(o.plugins, plugins...) }
}

// WithEvents says who is told what people should know; without it nobody is.
func WithEvents(events podmill.EventRecorder) Option { return func(o *options) { o.events = events } }

// WithObserver says who is told of what happens.
func WithObserver(observer Observer) Option { return func(o *options) { o.observer = observer } }

// WithAllocatable says what the node has for pods: the most that an emptyDir in memory may hold, and what a resourceFieldRef gives for a
// container without a limit. The func returns at once.
func WithAllocatable(allocatable func() corev1.ResourceList) Option {
	return func(o *options) { o.allocatable = allocatable }
}

// WithFilesOnDisk keeps what secret and projected volumes hold on disk, for an agent that may not mount a file system in memory. The
// default is in memory, as the kubelet has it, where the platform can.
func WithFilesOnDisk() Option { return func(o *options) { o.inMemory = false } }

// WithPatience is how long MountVolumes waits for volumes that are not ready; the default is 2 min 3 s, as the kubelet's. An attempt to make one ready that is under way then
// may come to its end, and has as long by itself. That begins anew whenever there is progress: a volume of any number of files is given to the pod's group, however long
// that takes. The end of MountVolumes' context ends it.
func WithPatience(d time.Duration) Option { return func(o *options) { o.patience = d } }

// builtins returns the plugins that need nothing but the node.
func (o *options) builtins() []Plugin {
	self := self{o.allocatable}
	projection := projection{objects: o.objects, self: self, issuers: o.issuers}
	return []Plugin{
		emptyDir{o.allocatable},
		hostPath{},
		local{warn: o.event, turns: &turns{}},
		&files{
			name: "kubernetes.io/configmap", collect: o.objects.collectConfigMap,
			handles: func(v *corev1.Volume) bool { return v.ConfigMap != nil },
		},
		&files{
			name: "kubernetes.io/secret", collect: o.objects.collectSecret, inMemory: o.inMemory,
			handles: func(v *corev1.Volume) bool { return v.Secret != nil },
		},
		&files{
			name: "kubernetes.io/downward-api", collect: self.collect,
			handles: func(v *corev1.Volume) bool { return v.DownwardAPI != nil },
		},
		&files{
			name: "kubernetes.io/projected", collect: projection.collect, inMemory: o.inMemory, warn: o.warn,
			handles: func(v *corev1.Volume) bool { return v.Projected != nil },
		},
	}
}

func (o *options) warn(pod *corev1.Pod, message string) {
	o.event(pod, "ProjectedVolumeOverlap", message)
}

func (o *options) event(pod *corev1.Pod, reason, message string) {
	if o.events != nil {
		o.events.Event(podmill.ReferenceTo(pod, ""), corev1.EventTypeWarning, reason, message)
	}
}

package csi

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/feature"
	"github.com/podmill/podmill/volume"
	"github.com/podmill/podmill/volume/internal/issued"
)

// pluginName is the kubelet's, and part of paths.
const pluginName = "kubernetes.io/csi"

// Drivers are the CSI drivers of a node, and the plugin that has them make volumes.
type Drivers struct {
	layout   layout
	node     string
	opts     options
	registry registry
	turns    turns
	issued   issued.Credentials[tokenID, podmill.Token]

	mu    sync.Mutex
	known map[volume.Place]known
}

// known is what this process remembers of a volume that is ready, beside what is on disk.
type known struct {
	ready bool              // it was made ready by this process
	grown resource.Quantity // as it was last made to grow
	renew time.Time         // when the driver is owed other tokens
}

var _ volume.PersistentPlugin = (*Drivers)(nil)

// New returns the drivers of a node of that name that register below a root directory, the absolute path that package volume has too. It starts nothing; [Drivers.Run] is
// what lets drivers register.
func New(root, nodeName string, opts ...Option) (*Drivers, error) {
	switch {
	case !filepath.IsAbs(root):
		return nil, fmt.Errorf("root directory %q of CSI volumes is not an absolute path", root)
	case nodeName == "":
		return nil, fmt.Errorf("CSI drivers need the name of their node: attachments are told apart by it")
	}
	d := &Drivers{layout: layout{root}, node: nodeName, known: map[volume.Place]known{}}
	d.opts.timeout = 2 * time.Minute
	for _, opt := range opts {
		opt(&d.opts)
	}
	return d, nil
}

// Name implements [volume.Plugin].
func (d *Drivers) Name() string { return pluginName }

// Handles implements [volume.Plugin]: inline volumes are handled.
func (d *Drivers) Handles(v *corev1.Volume) bool { return v.CSI != nil }

// HandlesPersistent implements [volume.PersistentPlugin].
func (d *Drivers) HandlesPersistent(pv *corev1.PersistentVolume) bool { return pv.Spec.CSI != nil }

// Features says which fields of a PodSpec are served.
func (d *Drivers) Features() podmill.Features {
	if d.opts.secrets == nil {
		return feature.Parse(`
volumes.csi: driver fsType readOnly volumeAttributes
volumes.csi.nodePublishSecretRef ! there is no source of Secrets
`)
	}
	return feature.Parse(`volumes.csi: driver fsType readOnly volumeAttributes nodePublishSecretRef.name`)
}

// InUse returns the volumes that may be mounted here, or are about to be, and that an attach controller attaches. While the status of a Node
// names one as in use it is not detached.
func (d *Drivers) InUse() ([]corev1.UniqueVolumeName, error) {
	var names []corev1.UniqueVolumeName
	var unreadable []error
	add := func(_ string, r record, err error) {
		if err == nil && r.AttachmentID != "" {
			names = append(names, r.uniqueName())
		}
		unreadable = append(unreadable, err)
	}
	err := errors.Join(d.layout.eachRecord(add), d.layout.eachStage(add)) // one may stay staged when its pods have gone
	slices.Sort(names)
	return slices.Compact(names), errors.Join(append(unreadable, err)...)
}

// Topology returns where the node lies, as the drivers that are registered say, by labels that a Node has then.
func (d *Drivers) Topology() map[string]string {
	all, _ := d.registry.all()
	topology := map[string]string{}
	for _, own := range all {
		maps.Copy(topology, own.topology)
	}
	return topology
}

func (d *Drivers) remembered(p volume.Place) known {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known[p]
}

func (d *Drivers) remember(p volume.Place, k known) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known[p] = k
}

func (d *Drivers) forget(p volume.Place) {
	d.issued.Forget(func(which tokenID) bool { return which.volume == p })
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.known, p)
}

// Option changes a default of [Drivers].
type Option func(*options)

type options struct {
	secrets  podmill.Secrets
	tokens   podmill.ServiceAccountTokens
	cluster  Cluster
	inUse    func()
	told     func(corev1.UniqueVolumeName) bool
	observer Observer
	timeout  time.Duration
}

// WithSecrets says who has the Secrets that volumes refer to; without it such volumes are refused.
func WithSecrets(secrets podmill.Secrets) Option { return func(o *options) { o.secrets = secrets } }

// WithServiceAccountTokens says who makes the tokens that a CSIDriver may ask for; without it volumes of such a driver are refused.
func WithServiceAccountTokens(tokens podmill.ServiceAccountTokens) Option {
	return func(o *options) { o.tokens = tokens }
}

// WithCluster joins the drivers to a cluster.
func WithCluster(cluster Cluster) Option { return func(o *options) { o.cluster = cluster } }

// WithInUse has changed called when [Drivers.InUse] may say something else than before, and told asked whether the cluster has been told of a volume: one that is
// attached is not mounted before that, or it could be detached under its pods. Both return at once.
func WithInUse(changed func(), told func(corev1.UniqueVolumeName) bool) Option {
	return func(o *options) { o.inUse, o.told = changed, told }
}

// WithObserver says who is told of what happens.
func WithObserver(observer Observer) Option { return func(o *options) { o.observer = observer } }

// WithTimeout is how long a driver may take for one call; the default is 2 min, as the kubelet's.
func WithTimeout(d time.Duration) Option { return func(o *options) { o.timeout = d } }

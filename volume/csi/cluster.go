package csi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/podmill/podmill"
)

// Cluster is what drivers have to do with a cluster. Its methods may be called concurrently; what they return is shared and read-only.
type Cluster interface {
	// CSIDriver returns what the cluster knows of a driver, [podmill.ErrNotFound] if that is nothing.
	CSIDriver(ctx context.Context, name string) (*storagev1.CSIDriver, error)
	// VolumeAttachment returns an attachment of a volume, [podmill.ErrNotFound] if there is none of that name.
	VolumeAttachment(ctx context.Context, name string) (*storagev1.VolumeAttachment, error)
	// PublishDrivers makes known that this node has these drivers and has no longer those by the names in gone, and that it lies where topology says, by labels. It is called
	// again after an error.
	PublishDrivers(ctx context.Context, drivers []storagev1.CSINodeDriver, gone []string, topology map[string]string) error
	// ClaimGrown notes that the volume of a claim is now that large.
	ClaimGrown(ctx context.Context, claim *corev1.PersistentVolumeClaim, size resource.Quantity) error
}

// info returns what the cluster says of a volume's driver. Without a cluster nothing is attached, and a driver may have inline volumes and is told whom
// a volume is for.
func (d *Drivers) info(ctx context.Context, s *spec) (*storagev1.CSIDriver, error) {
	if d.opts.cluster == nil {
		return &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{AttachRequired: ptr.To(false), PodInfoOnMount: ptr.To(true)}}, nil
	}
	info, err := d.opts.cluster.CSIDriver(ctx, s.DriverName)
	if err != nil && !errors.Is(err, podmill.ErrNotFound) {
		return nil, fmt.Errorf("CSIDriver %s: %w", s.DriverName, err)
	}
	if err != nil {
		info = nil
	}
	if err := s.allowed(info); err != nil {
		return nil, err
	}
	if info == nil {
		info = &storagev1.CSIDriver{}
	}
	return info, nil
}

// isAttached reports whether somebody has to attach a volume before it can be used.
func isAttached(s *spec, info *storagev1.CSIDriver) bool {
	return !s.isInline() && ptr.Deref(info.Spec.AttachRequired, true)
}

// How an attachment is waited for. A node may not watch one, so that it is asked for again and again.
const (
	minAsk = 50 * time.Millisecond
	maxAsk = 2 * time.Second
	// askFor is how long that goes on before people are told.
	askFor = 30 * time.Second
)

// attached waits until a volume is attached, and returns what the controller has to tell the node of it.
func (d *Drivers) attached(ctx context.Context, s *spec) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	for pause := minAsk; ; pause = min(2*pause, maxAsk) {
		told := d.opts.told == nil || d.opts.told(s.uniqueName()) // asked first: from then on it stays attached
		a, err := d.opts.cluster.VolumeAttachment(ctx, s.AttachmentID)
		switch {
		case err == nil && a.DeletionTimestamp != nil:
			err = errors.New("it is being detached")
		case err == nil && a.Status.Attached && !told:
			err = errors.New("the Node does not say yet that it is in use")
		case err == nil && a.Status.Attached:
			return a.Status.AttachmentMetadata, nil
		case err == nil && a.Status.AttachError != nil:
			err = errors.New(a.Status.AttachError.Message)
		case err == nil:
			err = errors.New("its attacher has not attached it yet")
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("volume %s of CSI driver %s is not attached to node %s, VolumeAttachment %s: %w", s.VolumeHandle, s.DriverName, s.NodeName, s.AttachmentID, err)
		case <-time.After(pause):
		}
	}
}

// publishDrivers keeps the cluster told of the drivers until ctx ends. Of those that an earlier agent has told it of and that have not registered yet nothing is said: they
// are about to.
func (d *Drivers) publishDrivers(ctx context.Context) {
	known := map[string]bool{}                 // whether it is there
	for pause := minPause; ctx.Err() == nil; { // drivers that go because the agent ends have not gone
		all, changed := d.registry.all()
		drivers := make([]storagev1.CSINodeDriver, 0, len(all))
		for name := range known {
			known[name] = false
		}
		for _, own := range all {
			known[own.name] = true
			drivers = append(drivers, own.node)
		}
		var gone []string
		for name, there := range known {
			if !there {
				gone = append(gone, name)
			}
		}
		call, cancel := context.WithTimeout(ctx, answerWithin)
		err := d.opts.cluster.PublishDrivers(call, drivers, gone, d.Topology())
		cancel()
		var again <-chan time.Time
		if err != nil && ctx.Err() == nil {
			logr.FromContextOrDiscard(ctx).Info("the cluster is not told yet which CSI drivers there are", "reason", err.Error())
			again = time.After(pause)
			pause = min(2*pause, askFor)
		} else {
			pause = minPause
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-again:
		}
	}
}

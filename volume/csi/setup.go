package csi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/volume"
	"github.com/podmill/podmill/volume/internal/hostdir"
)

// mounting is a volume of a pod on its way to be ready.
type mounting struct {
	*Drivers
	spec
	mount  volume.Mount
	driver *driver
	info   *storagev1.CSIDriver
}

// SetUp implements [volume.Plugin].
func (d *Drivers) SetUp(ctx context.Context, m volume.Mount) (podmill.Volume, error) {
	w := &mounting{Drivers: d, spec: specOf(m, d.node), mount: m}
	done, err := d.turns.take(ctx, d.turnOf(m.Place, w.record))
	if err != nil {
		return podmill.Volume{}, fmt.Errorf("volume %s of CSI driver %s is being made ready for another pod, or taken away: %w", w.VolumeHandle, w.DriverName, err)
	}
	defer done()
	before, err := readRecord(m.Path())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		before = record{State: waiting}
	case err != nil:
		before = record{State: asked} // all is done again
	case !before.isOf(w.record):
		return podmill.Volume{}, fmt.Errorf("volume %s of CSI driver %s is in its place, which goes with the pod: delete the pod", before.VolumeHandle, before.DriverName)
	}
	if before.State == ready && w.holds() {
		w.record = before
		err = w.refresh(ctx)
	} else if err = w.begin(ctx, before.State); err == nil {
		err = w.make(ctx)
	}
	if err != nil {
		return podmill.Volume{}, err
	}
	return w.volume()
}

// turnOf returns by what calls for a volume take turns: where it is staged, which its pods share, or where an inline one is.
func (d *Drivers) turnOf(p volume.Place, r record) string {
	if r.VolumeLifecycleMode == string(storagev1.VolumeLifecycleEphemeral) {
		return p.Path()
	}
	return d.layout.stage(r).dir
}

// holds reports whether a volume that was ready still is. When the machine was started anew its mounts are gone, and their directories are left. What is mounted is not looked
// into: its server may be away, and that would take for ever.
func (w *mounting) holds() bool {
	mounted, err := isMount(w.target())
	return err == nil && mounted || w.remembered(w.mount.Place).ready && w.isThere() == nil
}

// begin finds out who makes the volume, and puts on disk that he may be asked.
func (w *mounting) begin(ctx context.Context, before state) (err error) {
	if w.driver, err = w.find(w.DriverName); err != nil {
		return err
	}
	if w.info, err = w.Drivers.info(ctx, &w.spec); err != nil {
		return err
	}
	if isAttached(&w.spec, w.info) {
		w.AttachmentID = w.attachment()
	}
	if before == waiting {
		w.State = waiting
	}
	dir, err := w.mount.Open(true)
	if err != nil {
		return err
	}
	return errors.Join(w.write(w.mount.Path()), dir.Close())
}

// make has the volume attached, staged, published and made as the pod wants it.
func (w *mounting) make(ctx context.Context) error {
	var published map[string]string
	if w.AttachmentID != "" {
		if w.opts.inUse != nil {
			w.opts.inUse()
		}
		var err error
		if published, err = w.attached(ctx, &w.spec); err != nil {
			return err
		}
	}
	if err := w.stage(ctx, published); err != nil {
		return err
	}
	if err := w.publish(ctx, published); err != nil {
		return err
	}
	if err := w.give(ctx); err != nil {
		return err
	}
	w.State = ready
	if err := w.write(w.mount.Path()); err != nil {
		return err
	}
	k := w.remembered(w.mount.Place)
	k.ready = true
	w.remember(w.mount.Place, k)
	return w.grow(ctx) // what fails of that is done again without all the rest
}

// refresh brings a volume up to date that is ready. Whoever is needed for that and away is not waited for.
func (w *mounting) refresh(ctx context.Context) error {
	w.driver, _ = w.registry.find(w.DriverName)
	if info, err := w.Drivers.info(ctx, &w.spec); err == nil {
		w.info = info
	}
	if w.driver == nil || w.info == nil {
		return nil
	}
	if ptr.Deref(w.info.Spec.RequiresRepublish, false) {
		var published map[string]string
		var err error
		if w.AttachmentID != "" {
			published, err = w.attached(ctx, &w.spec)
		}
		if err == nil {
			err = w.publish(ctx, published)
		}
		if err != nil {
			return err
		}
	}
	return w.grow(ctx)
}

// give gives what is in the volume to the pod's group, unless the driver does or wants nobody to.
func (w *mounting) give(ctx context.Context) error {
	if !w.takesGroup(ptr.Deref(w.info.Spec.FSGroupPolicy, "")) || w.driver.can[csipb.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP] {
		return nil
	}
	place, err := w.mount.Open(false)
	if err != nil {
		return err
	}
	defer place.Close()
	dir, err := hostdir.Enter(place, mountDir)
	if err != nil {
		return err
	}
	defer dir.Close()
	policy := ptr.Deref(w.pod.Spec.SecurityContext.FSGroupChangePolicy, corev1.FSGroupChangeAlways)
	if err := hostdir.ChangeGroup(ctx, dir, int(*w.fsGroup()), policy == corev1.FSGroupChangeOnRootMismatch); err != nil {
		return fmt.Errorf("applyFSGroup failed for vol %s: %w", w.VolumeHandle, err)
	}
	return nil
}

// secretOf returns what is in a Secret that the volume refers to, nil if it refers to none.
func (w *mounting) secretOf(ctx context.Context, ref *corev1.SecretReference) (map[string]string, error) {
	if ref == nil {
		return nil, nil
	}
	if w.opts.secrets == nil {
		return nil, errNoSecrets
	}
	secret, err := w.opts.secrets.Secret(ctx, ref.Namespace, ref.Name)
	if err != nil {
		return nil, fmt.Errorf("secret %s/%s of volume %s: %w", ref.Namespace, ref.Name, w.VolumeHandle, err)
	}
	content := make(map[string]string, len(secret.Data))
	for key, value := range secret.Data {
		content[key] = string(value)
	}
	return content, nil
}

package csi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"

	"github.com/podmill/podmill/volume"
	"github.com/podmill/podmill/volume/internal/hostdir"
)

// TearDown implements [volume.Plugin]. The record goes last, so that whoever comes after an interruption finds it.
func (d *Drivers) TearDown(ctx context.Context, p volume.Place) error {
	own, err := readRecord(p.Path())
	if errors.Is(err, fs.ErrNotExist) {
		return removePlace(p) // one that was never begun
	}
	if err != nil {
		return err
	}
	done, err := d.turns.take(ctx, d.turnOf(p, own))
	if err != nil {
		return err
	}
	defer done()
	if own.State != waiting {
		if err := d.unpublish(ctx, p, own); err != nil {
			return err
		}
	}
	if err := d.unstage(ctx, own, p.Path()); err != nil {
		return err
	}
	if err := removePlace(p); err != nil {
		return err
	}
	d.forget(p)
	d.mayBeUnused(own)
	return nil
}

// mayBeUnused says that a volume may be in use no longer.
func (d *Drivers) mayBeUnused(r record) {
	if r.AttachmentID != "" && d.opts.inUse != nil {
		d.opts.inUse()
	}
}

// unpublish has the driver take a volume away from a pod, and sees that it is away.
func (d *Drivers) unpublish(ctx context.Context, p volume.Place, own record) error {
	target := filepath.Join(p.Path(), mountDir)
	if own.isBlock() {
		target = d.layout.device(own, string(p.UID))
	}
	driver, err := d.find(own.DriverName)
	if err != nil {
		return err
	}
	if own.State == ready { // for whoever finds it when this ends in between: it may be gone, or about to
		own.State = asked
		if err := own.write(p.Path()); err != nil {
			return err
		}
	}
	err = driver.call(ctx, "NodeUnpublishVolume", func(ctx context.Context, node csipb.NodeClient) error {
		_, err := node.NodeUnpublishVolume(ctx, &csipb.NodeUnpublishVolumeRequest{VolumeId: own.VolumeHandle, TargetPath: target})
		return err
	})
	if err == nil {
		err = removeEmpty(target)
	}
	if err != nil {
		return err
	}
	if own.isBlock() {
		_ = os.Remove(filepath.Dir(target)) // other pods may have the device
	}
	return nil
}

// unstage has the driver unstage a volume with the last pod that has it. except is the place of the one that does not count any more, if any.
func (d *Drivers) unstage(ctx context.Context, own record, except string) error {
	at := d.layout.stage(own)
	staged, unreadable := readRecord(at.dir)
	if errors.Is(unreadable, fs.ErrNotExist) || unreadable == nil && !staged.isOf(own) {
		return nil
	}
	if used, err := d.isUsed(own, except); err != nil || used {
		return err
	}
	driver, err := d.find(own.DriverName)
	if err != nil {
		return err
	}
	// From here on it may be gone, in part or at any time: a pod that comes before that is certain has it staged again.
	if unreadable == nil && staged.State == ready {
		staged.State = asked
		if err := staged.write(at.dir); err != nil {
			return err
		}
	}
	err = driver.call(ctx, "NodeUnstageVolume", func(ctx context.Context, node csipb.NodeClient) error {
		_, err := node.NodeUnstageVolume(ctx, &csipb.NodeUnstageVolumeRequest{VolumeId: own.VolumeHandle, StagingTargetPath: at.path})
		return err
	})
	if err != nil {
		return err
	}
	return removeStage(at)
}

// isUsed reports whether some pod has a volume that is staged. One whose record cannot be read may, where it has the volume's name, or that is not known: the kubelet's
// records of what is staged do not say it.
func (d *Drivers) isUsed(own record, except string) (used bool, err error) {
	at := d.layout.stage(own)
	err = d.layout.eachRecord(func(dir string, r record, unreadable error) {
		same := unreadable == nil && d.layout.stage(r) == at && r.isOf(own) || unreadable != nil && (own.SpecVolID == "" || filepath.Base(dir) == own.SpecVolID)
		used = used || same && dir != except
	})
	return used, err
}

// cleanUp unstages what is staged by a driver and no pod has: somebody has removed a pod's directory, or an agent was interrupted in the moment between. What fails is tried
// again after growing pauses, for as long as the driver is there.
func (d *Drivers) cleanUp(ctx context.Context, name string) {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		err := d.unstageOrphans(ctx, name)
		if err == nil || ctx.Err() != nil {
			return
		}
		logr.FromContextOrDiscard(ctx).Error(err, "volumes stay staged that no pod has", "driver", name)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// unstageOrphans tries once.
func (d *Drivers) unstageOrphans(ctx context.Context, name string) error {
	own := map[string]record{}
	err := d.layout.eachStage(func(dir string, r record, _ error) {
		if r.DriverName == name { // not so where it cannot be read
			own[dir] = r
		}
	})
	for dir, r := range own {
		done, failed := d.turns.take(ctx, dir)
		if failed == nil {
			failed = d.unstage(ctx, r, "")
			done()
			d.mayBeUnused(r)
		}
		err = errors.Join(err, failed)
	}
	return err
}

func removeStage(at stage) error {
	if err := removeEmpty(at.path); err != nil {
		return err
	}
	err := removeRecord(at.dir)
	if err == nil && filepath.Dir(at.path) != at.dir { // of a device, with one directory more
		err = os.Remove(filepath.Dir(at.dir))
	}
	return err
}

// removePlace removes a volume's own directory, with nothing in it but the record.
func removePlace(p volume.Place) error {
	if err := removeEmpty(filepath.Join(p.Path(), mountDir)); err != nil {
		return err
	}
	return removeRecord(p.Path())
}

// removeEmpty removes the target of a volume that is unpublished or unstaged, where its driver has left it: an empty directory, a link, or the file of a device. What is still
// mounted, and what has something in it, stays and is an error.
func removeEmpty(target string) error {
	mounted, err := isMount(target)
	if err == nil && mounted {
		err = fmt.Errorf("its CSI driver says that it is taken away, and it is still mounted at %s: unmount it", target)
	}
	if err == nil {
		err = os.Remove(target)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func isMount(target string) (bool, error) {
	parent, err := os.OpenRoot(filepath.Dir(target))
	if err != nil {
		return false, err
	}
	defer parent.Close()
	return hostdir.IsMount(parent, filepath.Base(target))
}

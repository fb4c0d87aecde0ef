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
	"k8s.io/utils/ptr"

	"github.com/podmill/podmill"
)

// stages reports whether the volume is staged before it is published.
func (w *mounting) stages() bool {
	return !w.isInline() && w.driver.can[csipb.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME]
}

func (w *mounting) stagingPath() string {
	if !w.stages() {
		return ""
	}
	return w.layout.stage(w.record).path
}

// stage has the driver stage the volume, which is for all pods that have it.
func (w *mounting) stage(ctx context.Context, published map[string]string) error {
	if !w.stages() {
		return nil
	}
	secrets, err := w.secretOf(ctx, w.stageSecret)
	if err != nil {
		return err
	}
	at := w.layout.stage(w.record)
	own, before := readRecord(at.dir)
	if before == nil && !own.isOf(w.record) {
		return fmt.Errorf("volume %s of CSI driver %s is still staged in its place, and goes when that driver unstages it", own.VolumeHandle, own.DriverName)
	}
	// One that is no mount may have gone with the machine's last start: the driver is asked again, and that is harmless.
	if mounted, err := isMount(at.path); before == nil && own.State == ready && err == nil && mounted {
		return nil
	}
	own = w.record
	own.State = asked
	if err := errors.Join(os.MkdirAll(at.dir, 0o750), os.MkdirAll(at.path, 0o750)); err != nil {
		return err
	}
	if err := own.write(at.dir); err != nil {
		return err
	}
	err = w.driver.call(ctx, "NodeStageVolume", func(ctx context.Context, node csipb.NodeClient) error {
		_, err := node.NodeStageVolume(ctx, &csipb.NodeStageVolumeRequest{
			VolumeId: w.VolumeHandle, PublishContext: published, StagingTargetPath: at.path, VolumeCapability: w.capability(w.driver.can),
			Secrets: secrets, VolumeContext: w.attributes,
		})
		return err
	})
	if err != nil && isFinal(err) && errors.Is(before, fs.ErrNotExist) {
		return errors.Join(err, removeStage(at)) // nothing was staged before, nor is now
	}
	if err != nil {
		return err
	}
	own.State = ready
	return own.write(at.dir)
}

// publish has the driver publish the volume for the pod.
func (w *mounting) publish(ctx context.Context, published map[string]string) error {
	secrets, err := w.secretOf(ctx, w.publishSecret)
	if err != nil {
		return err
	}
	attributes := w.volumeContext(ptr.Deref(w.info.Spec.PodInfoOnMount, false))
	if attributes, secrets, err = w.withTokens(ctx, attributes, secrets); err != nil {
		return err
	}
	if err := w.makeParent(); err != nil {
		return err
	}
	first := w.State == waiting
	if first {
		w.State = asked
		if err := w.write(w.mount.Path()); err != nil {
			return err
		}
	}
	err = w.driver.call(ctx, "NodePublishVolume", func(ctx context.Context, node csipb.NodeClient) error {
		_, err := node.NodePublishVolume(ctx, &csipb.NodePublishVolumeRequest{
			VolumeId: w.VolumeHandle, PublishContext: published, StagingTargetPath: w.stagingPath(), TargetPath: w.target(),
			VolumeCapability: w.capability(w.driver.can), Readonly: w.readOnly, Secrets: secrets, VolumeContext: attributes,
		})
		return err
	})
	if err != nil && first && isFinal(err) && removeEmpty(w.target()) == nil { // else it has left something, and may have published
		w.State = waiting
		return errors.Join(err, w.write(w.mount.Path()))
	}
	if err == nil {
		err = w.isThere()
	}
	return err
}

// target is where the volume is published.
func (w *mounting) target() string {
	if w.isBlock() {
		return w.layout.device(w.record, string(w.mount.UID))
	}
	return filepath.Join(w.mount.Path(), mountDir)
}

// makeParent makes the directory that the target is in. The target itself is the driver's to make.
func (w *mounting) makeParent() error {
	if w.isBlock() {
		return os.MkdirAll(filepath.Dir(w.target()), 0o750)
	}
	dir, err := w.mount.Open(true)
	if err == nil {
		err = dir.Close()
	}
	return err
}

// isThere returns an error unless a volume is where the driver was asked to publish it: it might do so elsewhere, or not at all.
func (w *mounting) isThere() error {
	target := w.target()
	info, err := os.Lstat(target)
	if w.isBlock() && err == nil {
		info, err = os.Stat(target)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("CSI driver %s says that volume %s is published, and there is nothing at %s", w.DriverName, w.VolumeHandle, target)
	case err != nil:
		return err
	case w.isBlock() && info.Mode().Type() != fs.ModeDevice:
		return fmt.Errorf("CSI driver %s says that volume %s is published, and at %s there is no block device", w.DriverName, w.VolumeHandle, target)
	case !w.isBlock() && !info.IsDir():
		return fmt.Errorf("CSI driver %s says that volume %s is published, and at %s there is no directory", w.DriverName, w.VolumeHandle, target)
	}
	return nil
}

// volume returns what containers get.
func (w *mounting) volume() (podmill.Volume, error) {
	path := w.target()
	if w.isBlock() {
		device, err := filepath.EvalSymlinks(path)
		return podmill.Volume{HostPath: device, Block: true, ReadOnly: w.readOnly, Renew: w.renewal()}, err
	}
	return podmill.Volume{HostPath: path, ReadOnly: w.readOnly, SELinuxRelabel: !w.readOnly, Renew: w.renewal()}, nil
}

// renewal is when the driver is owed other tokens; zero is never, as where it does not want to be asked again for a volume that is published.
func (w *mounting) renewal() time.Time {
	if w.info == nil || !ptr.Deref(w.info.Spec.RequiresRepublish, false) {
		return time.Time{}
	}
	return w.remembered(w.mount.Place).renew
}

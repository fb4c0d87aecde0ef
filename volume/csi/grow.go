package csi

import (
	"context"
	"fmt"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
)

// grow has the driver make the file system as large as the volume has become: the PersistentVolume says how large that is, and the claim how large it was when that was done
// last.
func (w *mounting) grow(ctx context.Context) error {
	pv, claim := w.mount.PV, w.mount.Claim
	if pv == nil || claim == nil || w.readOnly || !w.driver.can[csipb.NodeServiceCapability_RPC_EXPAND_VOLUME] {
		return nil
	}
	is, wanted := claim.Status.Capacity[corev1.ResourceStorage], pv.Spec.Capacity[corev1.ResourceStorage]
	if is.IsZero() || wanted.Cmp(is) <= 0 {
		return nil
	}
	if before := w.remembered(w.mount.Place); before.grown.Cmp(wanted) != 0 {
		secrets, err := w.secretOf(ctx, w.growSecret)
		if err != nil {
			return err
		}
		err = w.driver.call(ctx, "NodeExpandVolume", func(ctx context.Context, node csipb.NodeClient) error {
			_, err := node.NodeExpandVolume(ctx, &csipb.NodeExpandVolumeRequest{
				VolumeId: w.VolumeHandle, VolumePath: w.target(), StagingTargetPath: w.stagingPath(),
				CapacityRange: &csipb.CapacityRange{RequiredBytes: wanted.Value()}, VolumeCapability: w.capability(w.driver.can), Secrets: secrets,
			})
			return err
		})
		if status.Code(err) == codes.FailedPrecondition {
			return nil // it does not grow while it is in use, and is as good as before
		}
		if err != nil {
			return fmt.Errorf("volume %s does not grow from %s to %s: %w", w.VolumeHandle, is.String(), wanted.String(), err)
		}
		before.grown = wanted
		w.remember(w.mount.Place, before)
	}
	if w.opts.cluster == nil {
		return nil
	}
	if err := w.opts.cluster.ClaimGrown(ctx, claim, wanted); err != nil {
		return fmt.Errorf("claim %s/%s has grown to %s, and its status does not say so: %w", claim.Namespace, claim.Name, wanted.String(), err)
	}
	return nil
}

package csi

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"

	"github.com/podmill/podmill/volume"
)

// What a pod's volume asks of its driver. All here is pure.

// spec is a volume in the words that inline ones and PersistentVolumes have in common.
type spec struct {
	record
	pod        *corev1.Pod
	readOnly   bool
	fsType     string
	modes      []corev1.PersistentVolumeAccessMode
	flags      []string
	attributes map[string]string

	stageSecret, publishSecret, growSecret *corev1.SecretReference
}

func specOf(m volume.Mount, node string) spec {
	s := spec{pod: m.Pod, record: record{SpecVolID: m.Name, NodeName: node}}
	if m.PV == nil {
		s.inline(m)
		return s
	}
	source := m.PV.Spec.CSI
	s.DriverName, s.VolumeHandle, s.VolumeLifecycleMode = source.Driver, source.VolumeHandle, string(storagev1.VolumeLifecyclePersistent)
	s.fsType, s.attributes, s.readOnly = source.FSType, source.VolumeAttributes, m.ReadOnly
	s.modes, s.flags = m.PV.Spec.AccessModes, m.PV.Spec.MountOptions
	s.stageSecret, s.publishSecret, s.growSecret = source.NodeStageSecretRef, source.NodePublishSecretRef, source.NodeExpandSecretRef
	if ptr.Deref(m.PV.Spec.VolumeMode, "") == corev1.PersistentVolumeBlock {
		s.VolumeMode = block
	}
	return s
}

// inline makes it the spec of a volume that the pod has inline: it comes and goes with the pod, and nobody else knows it.
func (s *spec) inline(m volume.Mount) {
	source := m.Volume.CSI
	s.DriverName, s.VolumeLifecycleMode = source.Driver, string(storagev1.VolumeLifecycleEphemeral)
	s.VolumeHandle = fmt.Sprintf("csi-%x", sha256.Sum256([]byte(string(m.Pod.UID)+m.Name)))
	s.fsType, s.attributes, s.readOnly = ptr.Deref(source.FSType, ""), source.VolumeAttributes, ptr.Deref(source.ReadOnly, false)
	s.modes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	if ref := source.NodePublishSecretRef; ref != nil {
		s.publishSecret = &corev1.SecretReference{Namespace: m.Pod.Namespace, Name: ref.Name}
	}
}

func (s *spec) isInline() bool {
	return s.VolumeLifecycleMode == string(storagev1.VolumeLifecycleEphemeral)
}

// attachment is the name that an attach controller gives to a volume's VolumeAttachment.
func (s *spec) attachment() string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(s.VolumeHandle+s.DriverName+s.NodeName)))
}

// fsGroup is the group that the pod wants volumes to belong to; nil is none.
func (s *spec) fsGroup() *int64 {
	if s.pod.Spec.SecurityContext == nil {
		return nil
	}
	return s.pod.Spec.SecurityContext.FSGroup
}

// takesGroup reports whether the agent gives what is in the volume to the pod's group, by what the driver's CSIDriver says of it.
func (s *spec) takesGroup(policy storagev1.FSGroupPolicy) bool {
	switch {
	case s.fsGroup() == nil, s.readOnly, s.isBlock(), policy == storagev1.NoneFSGroupPolicy:
		return false
	case policy == storagev1.FileFSGroupPolicy:
		return true
	}
	return s.fsType != "" && (slices.Contains(s.modes, corev1.ReadWriteOnce) || slices.Contains(s.modes, corev1.ReadWriteOncePod))
}

// capability says how the volume is used.
func (s *spec) capability(can capabilities) *csipb.VolumeCapability {
	c := &csipb.VolumeCapability{AccessMode: &csipb.VolumeCapability_AccessMode{Mode: s.accessMode(can)}}
	if s.isBlock() {
		c.AccessType = &csipb.VolumeCapability_Block{Block: &csipb.VolumeCapability_BlockVolume{}}
		return c
	}
	mount := &csipb.VolumeCapability_MountVolume{FsType: s.fsType, MountFlags: s.flags}
	if gid := s.fsGroup(); gid != nil && can[csipb.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP] {
		mount.VolumeMountGroup = strconv.FormatInt(*gid, 10)
	}
	c.AccessType = &csipb.VolumeCapability_Mount{Mount: mount}
	return c
}

// accessMode translates the first mode, as the kubelet does: whoever provisioned the volume has put the one there that counts.
func (s *spec) accessMode(can capabilities) csipb.VolumeCapability_AccessMode_Mode {
	mode := corev1.ReadWriteOnce
	if len(s.modes) > 0 {
		mode = s.modes[0]
	}
	several := can[csipb.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER]
	switch {
	case mode == corev1.ReadOnlyMany:
		return csipb.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
	case mode == corev1.ReadWriteMany:
		return csipb.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
	case mode == corev1.ReadWriteOncePod && several:
		return csipb.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER
	case several:
		return csipb.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER
	}
	return csipb.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
}

// volumeContext is what the driver is told of the volume: its attributes and, where the driver wants that, whom it is for.
func (s *spec) volumeContext(podInfo bool) map[string]string {
	if !podInfo {
		return s.attributes
	}
	all := maps.Clone(s.attributes)
	if all == nil {
		all = map[string]string{}
	}
	const prefix = "csi.storage.k8s.io/"
	all[prefix+"pod.name"], all[prefix+"pod.namespace"], all[prefix+"pod.uid"] = s.pod.Name, s.pod.Namespace, string(s.pod.UID)
	all[prefix+"serviceAccount.name"] = s.pod.Spec.ServiceAccountName
	all[prefix+"ephemeral"] = strconv.FormatBool(s.isInline())
	return all
}

// allowed reports why a driver may not have such a volume, by what its CSIDriver says; nil is that there is none.
func (s *spec) allowed(info *storagev1.CSIDriver) error {
	modes := []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}
	if info != nil && len(info.Spec.VolumeLifecycleModes) > 0 {
		modes = info.Spec.VolumeLifecycleModes
	}
	switch mode := storagev1.VolumeLifecycleMode(s.VolumeLifecycleMode); {
	case slices.Contains(modes, mode):
		return nil
	case info == nil:
		return fmt.Errorf("volume mode %q not supported by driver %s (no CSIDriver object)", mode, s.DriverName)
	default:
		return fmt.Errorf("volume mode %q not supported by driver %s (only supports %q)", mode, s.DriverName, modes)
	}
}

// What a composer has not given.
const (
	errNoSecrets = unsupportedError("the volume refers to a Secret, and there is no source of Secrets here")
	errNoTokens  = unsupportedError("its driver wants service account tokens, and nothing makes them here")
)

// unsupportedError says that something is not supported, in words of its own.
type unsupportedError string

func (e unsupportedError) Error() string { return string(e) }

// Is makes it an [errors.ErrUnsupported].
func (e unsupportedError) Is(target error) bool { return target == errors.ErrUnsupported }

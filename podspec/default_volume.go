package podspec

import (
	corev1 "k8s.io/api/core/v1"
)

func defaultVolume(v *corev1.VolumeSource) {
	if *v == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	if v.HostPath != nil {
		orPointer(&v.HostPath.Type, corev1.HostPathUnset)
	}
	if v.Secret != nil {
		orPointer(&v.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	}
	if v.ConfigMap != nil {
		orPointer(&v.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	}
	if v.DownwardAPI != nil {
		orPointer(&v.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
		for i := range v.DownwardAPI.Items {
			defaultFieldRef(v.DownwardAPI.Items[i].FieldRef)
		}
	}
	if v.Projected != nil {
		defaultProjected(v.Projected)
	}
	if v.Image != nil {
		or(&v.Image.PullPolicy, pullPolicy(v.Image.Reference))
	}
	if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
		claim := &v.Ephemeral.VolumeClaimTemplate.Spec
		orPointer(&claim.VolumeMode, corev1.PersistentVolumeFilesystem)
		round(claim.Resources.Limits)
		round(claim.Resources.Requests)
	}
	defaultRemoteVolume(v)
}

func defaultProjected(v *corev1.ProjectedVolumeSource) {
	orPointer(&v.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
	for i := range v.Sources {
		s := &v.Sources[i]
		if s.DownwardAPI != nil {
			for j := range s.DownwardAPI.Items {
				defaultFieldRef(s.DownwardAPI.Items[j].FieldRef)
			}
		}
		if s.ServiceAccountToken != nil {
			orPointer(&s.ServiceAccountToken.ExpirationSeconds, 60*60)
		}
	}
}

func defaultRemoteVolume(v *corev1.VolumeSource) {
	if v.ISCSI != nil {
		or(&v.ISCSI.ISCSIInterface, "default")
	}
	if v.RBD != nil {
		or(&v.RBD.RBDPool, "rbd")
		or(&v.RBD.RadosUser, "admin")
		or(&v.RBD.Keyring, "/etc/ceph/keyring")
	}
	if v.ScaleIO != nil {
		or(&v.ScaleIO.StorageMode, "ThinProvisioned")
		or(&v.ScaleIO.FSType, "xfs")
	}
	if v.AzureDisk != nil {
		orPointer(&v.AzureDisk.CachingMode, corev1.AzureDataDiskCachingReadWrite)
		orPointer(&v.AzureDisk.FSType, "ext4")
		orPointer(&v.AzureDisk.ReadOnly, false)
		orPointer(&v.AzureDisk.Kind, corev1.AzureSharedBlobDisk)
	}
}

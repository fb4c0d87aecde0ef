package podspec

import (
	corev1 "k8s.io/api/core/v1"
)

func (c *checker) volumeList(p path) {
	names := map[string]bool{}
	for i := range c.spec.Volumes {
		v := &c.spec.Volumes[i]
		at := p.Index(i)
		c.label(at.Child("name"), v.Name)
		if names[v.Name] && v.Name != "" {
			c.duplicate(at.Child("name"), v.Name)
		}
		names[v.Name] = true
		c.iscsiPortal(at.Child("name"), v)
		c.exactlyOne(at, "say what the volume is, such as emptyDir", c.volumeKinds(at, v))
	}
}

// volumeKinds are all kinds of volumes. Of several it is the first that is checked.
func (c *checker) volumeKinds(volume path, v *corev1.Volume) []choice {
	e := &c.problems
	return []choice{
		{"emptyDir", v.EmptyDir != nil, func(p path) { e.emptyDir(p, v.EmptyDir) }},
		{"hostPath", v.HostPath != nil, func(p path) { e.hostPath(p, v.HostPath) }},
		{"gitRepo", v.GitRepo != nil, func(p path) { e.gitRepo(p, v.GitRepo) }},
		{"gcePersistentDisk", v.GCEPersistentDisk != nil, func(p path) { e.disk(p, "pdName", v.GCEPersistentDisk.PDName, v.GCEPersistentDisk.Partition) }},
		{"awsElasticBlockStore", v.AWSElasticBlockStore != nil, func(p path) { e.disk(p, "volumeID", v.AWSElasticBlockStore.VolumeID, v.AWSElasticBlockStore.Partition) }},
		{"secret", v.Secret != nil, func(p path) { e.secret(p, v.Secret) }},
		{"nfs", v.NFS != nil, func(p path) { e.nfs(p, v.NFS) }},
		{"iscsi", v.ISCSI != nil, func(p path) { e.iscsi(p, v.ISCSI) }},
		{"glusterfs", v.Glusterfs != nil, func(p path) { e.need(p, need{"endpoints", v.Glusterfs.EndpointsName}, need{"path", v.Glusterfs.Path}) }},
		{"flocker", v.Flocker != nil, func(p path) { e.flocker(p, v.Flocker) }},
		{"persistentVolumeClaim", v.PersistentVolumeClaim != nil, func(p path) { c.claim(p, v.PersistentVolumeClaim) }},
		{"rbd", v.RBD != nil, func(p path) { e.need(p, need{"monitors", first(v.RBD.CephMonitors)}, need{"image", v.RBD.RBDImage}) }},
		{"cinder", v.Cinder != nil, func(p path) { e.cinder(p, v.Cinder) }},
		{"cephfs", v.CephFS != nil, func(p path) { e.need(p, need{"monitors", first(v.CephFS.Monitors)}) }},
		{"quobyte", v.Quobyte != nil, func(p path) { e.quobyte(p, v.Quobyte) }},
		{"downwardAPI", v.DownwardAPI != nil, func(p path) { e.downwardAPIVolume(p, v.DownwardAPI) }},
		{"fc", v.FC != nil, func(p path) { e.fibreChannel(p, v.FC) }},
		{"flexVolume", v.FlexVolume != nil, func(p path) { e.flexVolume(p, v.FlexVolume) }},
		{"configMap", v.ConfigMap != nil, func(p path) { e.configMap(p, v.ConfigMap) }},
		{"azureFile", v.AzureFile != nil, func(p path) {
			e.need(p, need{"secretName", v.AzureFile.SecretName}, need{"shareName", v.AzureFile.ShareName})
		}},
		{"vsphereVolume", v.VsphereVolume != nil, func(p path) { e.need(p, need{"volumePath", v.VsphereVolume.VolumePath}) }},
		{"photonPersistentDisk", v.PhotonPersistentDisk != nil, func(p path) { e.need(p, need{"pdID", v.PhotonPersistentDisk.PdID}) }},
		{"portworxVolume", v.PortworxVolume != nil, func(p path) { e.need(p, need{"volumeID", v.PortworxVolume.VolumeID}) }},
		{"azureDisk", v.AzureDisk != nil, func(p path) { e.azureDisk(p, v.AzureDisk) }},
		{"storageos", v.StorageOS != nil, func(p path) { e.storageOS(p, v.StorageOS) }},
		{"projected", v.Projected != nil, func(p path) { c.projected(p, v.Projected) }},
		{"scaleIO", v.ScaleIO != nil, func(p path) {
			e.need(p, need{"gateway", v.ScaleIO.Gateway}, need{"system", v.ScaleIO.System}, need{"volumeName", v.ScaleIO.VolumeName})
		}},
		{"csi", v.CSI != nil, func(p path) { e.csi(p, v.CSI) }},
		{"ephemeral", v.Ephemeral != nil, func(p path) {
			c.claimName(volume.Child("name"), v)
			e.ephemeral(p, v.Ephemeral)
		}},
		{"image", v.Image != nil, func(p path) { e.image(p, v.Image) }},
	}
}

func (e *problems) emptyDir(p path, v *corev1.EmptyDirVolumeSource) {
	if v.SizeLimit != nil && v.SizeLimit.Sign() < 0 {
		e.invalid(p.Child("sizeLimit"), v.SizeLimit.String(), "must be 0 or more")
	}
	if v.Mode != nil && (*v.Mode < 0 || *v.Mode > 0o1777) {
		e.invalid(p.Child("mode"), *v.Mode, "must be between 0 and 01777 (octal), in JSON 1023")
	}
}

func (e *problems) hostPath(p path, v *corev1.HostPathVolumeSource) {
	if !e.given(p.Child("path"), v.Path, "give the path on the host") {
		return
	}
	e.noBacksteps(p.Child("path"), v.Path)
	maybeOneOf(e, p.Child("type"), v.Type, corev1.HostPathUnset, corev1.HostPathDirectoryOrCreate, corev1.HostPathDirectory,
		corev1.HostPathFileOrCreate, corev1.HostPathFile, corev1.HostPathSocket, corev1.HostPathCharDev, corev1.HostPathBlockDev)
}

func (e *problems) secret(p path, v *corev1.SecretVolumeSource) {
	e.given(p.Child("secretName"), v.SecretName, "say which Secret")
	e.files(p, v.DefaultMode, v.DefaultUser, v.Items)
}

func (e *problems) configMap(p path, v *corev1.ConfigMapVolumeSource) {
	e.given(p.Child("name"), v.Name, "say which ConfigMap")
	e.files(p, v.DefaultMode, v.DefaultUser, v.Items)
}

func (e *problems) downwardAPIVolume(p path, v *corev1.DownwardAPIVolumeSource) {
	e.files(p, v.DefaultMode, v.DefaultUser, nil)
	e.downwardAPI(p.Child("items"), v.Items)
}

func (e *problems) image(p path, v *corev1.ImageVolumeSource) {
	e.given(p.Child("reference"), v.Reference, "say which image")
	oneOf(e, p.Child("pullPolicy"), v.PullPolicy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
}

// files checks the files that come from the keys of an object.
func (e *problems) files(p path, mode *int32, user *int64, items []corev1.KeyToPath) {
	e.mode(p.Child("defaultMode"), mode)
	e.user(p.Child("defaultUser"), user)
	for i, item := range items {
		at := p.Child("items").Index(i)
		e.given(at.Child("key"), item.Key, "say which key")
		e.file(at, item.Path, item.Mode, item.User)
	}
}

func (e *problems) file(p path, name string, mode *int32, user *int64) {
	if e.given(p.Child("path"), name, "give the file's path in the volume") {
		e.fileName(p.Child("path"), name)
	}
	e.mode(p.Child("mode"), mode)
	e.user(p.Child("user"), user)
}

func (e *problems) downwardAPI(p path, items []corev1.DownwardAPIVolumeFile) {
	for i, item := range items {
		at := p.Index(i)
		e.file(at, item.Path, item.Mode, item.User)
		e.exactlyOne(at, "say what the file is: one of fieldRef or resourceFieldRef", []choice{
			{"fieldRef", item.FieldRef != nil, func(p path) { e.fieldRef(p, item.FieldRef, false) }},
			{"resourceFieldRef", item.ResourceFieldRef != nil, func(p path) { e.resourceFieldRef(p, item.ResourceFieldRef, false) }},
		})
	}
}

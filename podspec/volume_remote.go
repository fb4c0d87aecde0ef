package podspec

import (
	"fmt"
	"net"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Volumes of others: they are checked like the rest, although nothing here mounts most of them.

// need is a field that must not be empty.
type need struct{ field, value string }

func (e *problems) need(p path, needs ...need) {
	for _, n := range needs {
		e.given(p.Child(n.field), n.value, "is needed for this kind of volume")
	}
}

// first returns something of a list that is not empty.
func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return "some"
}

// disk checks a disk of a cloud, or a partition of it.
func (e *problems) disk(p path, idField, id string, partition int32) {
	e.need(p, need{idField, id})
	between(e, p.Child("partition"), partition, 0, 255)
}

func (e *problems) gitRepo(p path, v *corev1.GitRepoVolumeSource) {
	e.need(p, need{"repository", v.Repository})
	e.below(p.Child("directory"), v.Directory)
}

func (e *problems) nfs(p path, v *corev1.NFSVolumeSource) {
	e.need(p, need{"server", v.Server}, need{"path", v.Path})
	if v.Path != "" && !strings.HasPrefix(v.Path, "/") {
		e.invalid(p.Child("path"), v.Path, "must be an absolute path")
	}
}

func (e *problems) iscsi(p path, v *corev1.ISCSIVolumeSource) {
	e.need(p, need{"targetPortal", v.TargetPortal}, need{"iqn", v.IQN})
	if v.IQN != "" && !isISCSIName(v.IQN) {
		e.invalid(p.Child("iqn"), v.IQN, "must be a name such as \"iqn.2015-02.example.com:test\"")
	}
	between(e, p.Child("lun"), v.Lun, 0, 255)
	if (v.DiscoveryCHAPAuth || v.SessionCHAPAuth) && v.SecretRef == nil {
		e.required(p.Child("secretRef"), "say which Secret has the CHAP credentials")
	}
	if v.InitiatorName != nil && !isISCSIName(*v.InitiatorName) {
		e.invalid(p.Child("initiatorName"), *v.InitiatorName, "must be a name such as \"iqn.2015-02.example.com:test\"")
	}
}

// maxISCSIPortal is how long the names of a volume and its portal may be together, with a colon between them, if an initiator is named.
const maxISCSIPortal = 64

func (e *problems) iscsiPortal(p path, v *corev1.Volume) {
	if v.ISCSI != nil && v.ISCSI.InitiatorName != nil && len(v.Name)+1+len(v.ISCSI.TargetPortal) > maxISCSIPortal {
		e.invalid(p, v.Name, fmt.Sprintf("must be %d characters at most with iscsi.targetPortal", maxISCSIPortal-1))
	}
}

func isISCSIName(name string) bool {
	switch {
	case strings.HasPrefix(name, "iqn"):
		return matches(`iqn\.\d{4}-\d{2}\.([[:alnum:]-.]+)(:[^,;*&$|\s]+)$`, name)
	case strings.HasPrefix(name, "eui"):
		return matches(`^eui.[[:alnum:]]{16}$`, name)
	default:
		return matches(`^naa.[[:alnum:]]{32}$`, name)
	}
}

func (e *problems) flocker(p path, v *corev1.FlockerVolumeSource) {
	if (v.DatasetName == "") == (v.DatasetUUID == "") {
		e.invalid(p, v.DatasetName, "must have one of datasetName and datasetUUID")
	}
	if strings.Contains(v.DatasetName, "/") {
		e.invalid(p.Child("datasetName"), v.DatasetName, "must have no slash")
	}
}

func (e *problems) cinder(p path, v *corev1.CinderVolumeSource) {
	e.need(p, need{"volumeID", v.VolumeID})
	e.secretRef(p.Child("secretRef"), v.SecretRef)
}

func (e *problems) secretRef(p path, ref *corev1.LocalObjectReference) {
	if ref != nil {
		e.given(p.Child("name"), ref.Name, "say which Secret")
	}
}

func (e *problems) quobyte(p path, v *corev1.QuobyteVolumeSource) {
	const maxTenant = 64
	e.need(p, need{"registry", v.Registry}, need{"volume", v.Volume})
	switch {
	case v.Registry == "":
	case len(v.Tenant) > maxTenant:
		e.list = append(e.list, field.TooLong(p.Child("tenant"), "", maxTenant))
	default:
		for pair := range strings.SplitSeq(v.Registry, ",") {
			if _, _, err := net.SplitHostPort(pair); err != nil {
				e.invalid(p.Child("registry"), v.Registry, "must be a host:port, or several with commas between them")
			}
		}
	}
}

func (e *problems) fibreChannel(p path, v *corev1.FCVolumeSource) {
	if (len(v.TargetWWNs) == 0) == (len(v.WWIDs) == 0) {
		e.invalid(p.Child("targetWWNs"), v.TargetWWNs, "must have one of targetWWNs and wwids")
	}
	if len(v.TargetWWNs) == 0 {
		return
	}
	if v.Lun == nil {
		e.required(p.Child("lun"), "say which, with targetWWNs")
		return
	}
	between(e, p.Child("lun"), *v.Lun, 0, 255)
}

func (e *problems) flexVolume(p path, v *corev1.FlexVolumeSource) {
	e.need(p, need{"driver", v.Driver})
	for _, key := range sorted(v.Options) {
		domain, _, _ := strings.Cut(key, "/")
		domain = "." + strings.ToLower(domain)
		if strings.HasSuffix(domain, ".kubernetes.io") || strings.HasSuffix(domain, ".k8s.io") {
			e.invalid(p.Child("options").Key(key), key, "must be of another domain than kubernetes.io and k8s.io")
		}
	}
}

func (e *problems) azureDisk(p path, v *corev1.AzureDiskVolumeSource) {
	e.need(p, need{"diskName", v.DiskName}, need{"diskURI", v.DataDiskURI})
	maybeOneOf(e, p.Child("cachingMode"), v.CachingMode,
		corev1.AzureDataDiskCachingNone, corev1.AzureDataDiskCachingReadOnly, corev1.AzureDataDiskCachingReadWrite)
	maybeOneOf(e, p.Child("kind"), v.Kind, corev1.AzureSharedBlobDisk, corev1.AzureDedicatedBlobDisk, corev1.AzureManagedDisk)
	if v.Kind == nil {
		return
	}
	scheme := "https://"
	if *v.Kind == corev1.AzureManagedDisk {
		scheme = "/subscriptions/"
	}
	if !strings.HasPrefix(v.DataDiskURI, scheme) {
		e.invalid(p.Child("diskURI"), v.DataDiskURI, fmt.Sprintf("must begin with %q for the kind %s", scheme, *v.Kind))
	}
}

func (e *problems) storageOS(p path, v *corev1.StorageOSVolumeSource) {
	e.label(p.Child("volumeName"), v.VolumeName)
	if v.VolumeNamespace != "" {
		e.label(p.Child("volumeNamespace"), v.VolumeNamespace)
	}
	e.secretRef(p.Child("secretRef"), v.SecretRef)
}

// maxDriver is how long the name of a CSI driver may be.
const maxDriver = 63

func (e *problems) csi(p path, v *corev1.CSIVolumeSource) {
	if e.given(p.Child("driver"), v.Driver, "say which driver") {
		if len(v.Driver) > maxDriver {
			e.list = append(e.list, field.TooLong(p.Child("driver"), "", maxDriver))
		}
		e.says(p.Child("driver"), v.Driver, validation.IsDNS1123Subdomain(strings.ToLower(v.Driver)))
	}
	e.secretRef(p.Child("nodePublishSecretRef"), v.NodePublishSecretRef)
	if ref := v.NodePublishSecretRef; ref != nil && ref.Name != "" {
		e.subdomain(p.Child("nodePublishSecretRef", "name"), ref.Name)
	}
}

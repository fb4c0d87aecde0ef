package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateStatic says what a pod has that only an API server could give, which a pod of a file or a URL therefore cannot have: service
// accounts, claims of storage and of devices, objects of the cluster. It does not look at what [Validate] looks at.
//
// ConfigMaps and Secrets are not among them, other than with the kubelet, which has nowhere to take them from without an API server.
// What hands them out to static pods must not ask one for them (CVE-2025-4563). Nor are inline volumes of CSI drivers, which a node can have without one.
func ValidateStatic(pod *corev1.Pod) field.ErrorList {
	e := &problems{}
	p := field.NewPath("spec")
	const cure = "needs an API server, which a static pod has not: remove it"
	if pod.Spec.ServiceAccountName != "" {
		e.forbidden(p.Child("serviceAccountName"), cure)
	}
	if len(pod.Spec.ResourceClaims) > 0 {
		e.forbidden(p.Child("resourceClaims"), cure)
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		at := p.Child("volumes").Index(i)
		for _, u := range []use{
			{"persistentVolumeClaim", v.PersistentVolumeClaim != nil}, {"ephemeral", v.Ephemeral != nil},
			{"glusterfs", v.Glusterfs != nil},
		} {
			if u.used {
				e.forbidden(at.Child(u.field), cure)
			}
		}
		if v.Projected == nil {
			continue
		}
		for j := range v.Projected.Sources {
			s := &v.Projected.Sources[j]
			at := at.Child("projected", "sources").Index(j)
			for _, u := range []use{
				{"serviceAccountToken", s.ServiceAccountToken != nil}, {"clusterTrustBundle", s.ClusterTrustBundle != nil},
				{"podCertificate", s.PodCertificate != nil},
			} {
				if u.used {
					e.forbidden(at.Child(u.field), cure)
				}
			}
			if *s == (corev1.VolumeProjection{}) {
				e.required(at, "say what the source is, such as configMap")
			}
		}
	}
	return e.list
}

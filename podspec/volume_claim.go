package podspec

import (
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// claim checks a claim, which must not be one that is made for a volume of this pod.
func (c *checker) claim(p path, v *corev1.PersistentVolumeClaimVolumeSource) {
	c.given(p.Child("claimName"), v.ClaimName, "say which claim")
	for i := range c.spec.Volumes {
		if o := &c.spec.Volumes[i]; o.Ephemeral != nil && c.pod.Name != "" && v.ClaimName == c.pod.Name+"-"+o.Name {
			c.invalid(p.Child("claimName"), v.ClaimName, fmt.Sprintf("is made for the ephemeral volume %q", o.Name))
		}
	}
}

// claimName checks the name of the claim that is made for an ephemeral volume.
func (c *checker) claimName(p path, v *corev1.Volume) {
	if c.pod.Name != "" && v.Name != "" {
		c.subdomain(p, c.pod.Name+"-"+v.Name)
	}
}

func (e *problems) ephemeral(p path, v *corev1.EphemeralVolumeSource) {
	p = p.Child("volumeClaimTemplate")
	if v.VolumeClaimTemplate == nil {
		e.required(p, "say what to claim")
		return
	}
	meta := v.VolumeClaimTemplate.ObjectMeta
	e.all(apivalidation.ValidateAnnotations(meta.Annotations, p.Child("metadata", "annotations")))
	e.labels(p.Child("metadata", "labels"), meta.Labels)
	meta.Annotations, meta.Labels = nil, nil
	if !reflect.DeepEqual(meta, metav1.ObjectMeta{}) {
		e.forbidden(p.Child("metadata"), "can have labels and annotations only")
	}
	e.claimSpec(p.Child("spec"), &v.VolumeClaimTemplate.Spec)
}

func (e *problems) claimSpec(p path, s *corev1.PersistentVolumeClaimSpec) {
	e.accessModes(p.Child("accessModes"), s.AccessModes)
	if s.Selector != nil {
		e.selector(p.Child("selector"), s.Selector)
	}
	at := p.Child("resources", "requests").Key(string(corev1.ResourceStorage))
	if size, ok := s.Resources.Requests[corev1.ResourceStorage]; !ok {
		e.required(at, "say how much, such as 1Gi")
	} else if size.Sign() <= 0 {
		e.invalid(at, size.String(), "must be more than 0")
	}
	if s.StorageClassName != nil && *s.StorageClassName != "" {
		e.subdomain(p.Child("storageClassName"), *s.StorageClassName)
	}
	if s.VolumeAttributesClassName != nil && *s.VolumeAttributesClassName != "" {
		e.subdomain(p.Child("volumeAttributesClassName"), *s.VolumeAttributesClassName)
	}
	maybeOneOf(e, p.Child("volumeMode"), s.VolumeMode, corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)
	e.dataSources(p, s.DataSource, s.DataSourceRef)
}

func (e *problems) accessModes(p path, modes []corev1.PersistentVolumeAccessMode) {
	if len(modes) == 0 {
		e.required(p, "say how it is used, such as ReadWriteOnce")
	}
	alone, shared := false, false
	for i, mode := range modes {
		oneOf(e, p.Index(i), mode, corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOncePod)
		alone = alone || mode == corev1.ReadWriteOncePod
		shared = shared || mode == corev1.ReadWriteOnce || mode == corev1.ReadOnlyMany || mode == corev1.ReadWriteMany
	}
	if alone && shared {
		e.forbidden(p, "ReadWriteOncePod can only be alone")
	}
}

// dataSources checks what a claim is filled from. It can be said in two ways, which must then say the same.
func (e *problems) dataSources(p path, source *corev1.TypedLocalObjectReference, ref *corev1.TypedObjectReference) {
	if source != nil {
		e.dataSource(p.Child("dataSource"), source.APIGroup, source.Kind, source.Name)
	}
	if ref == nil {
		return
	}
	e.dataSource(p.Child("dataSourceRef"), ref.APIGroup, ref.Kind, ref.Name)
	elsewhere := ref.Namespace != nil && *ref.Namespace != ""
	if elsewhere {
		e.says(p.Child("dataSourceRef", "namespace"), *ref.Namespace, apivalidation.ValidateNamespaceName(*ref.Namespace, false))
	}
	switch {
	case source == nil:
	case elsewhere:
		e.invalid(p.Child("dataSource"), source.Name, "must be left out when dataSourceRef has a namespace")
	case source.Kind != ref.Kind || source.Name != ref.Name || !reflect.DeepEqual(source.APIGroup, ref.APIGroup):
		e.invalid(p.Child("dataSource"), source.Name, "must be the same as dataSourceRef, or left out")
	}
}

func (e *problems) dataSource(p path, group *string, kind, name string) {
	e.given(p.Child("name"), name, "say which object")
	e.given(p.Child("kind"), kind, "say of which kind")
	if group != nil && *group != "" {
		e.subdomain(p.Child("apiGroup"), *group)
	} else if kind != "PersistentVolumeClaim" {
		e.invalid(p, kind, "must be PersistentVolumeClaim, or have an apiGroup")
	}
}

package podspec

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
)

func (c *checker) env(p path, vars []corev1.EnvVar) {
	for i, v := range vars {
		at := p.Index(i)
		if c.given(at.Child("name"), v.Name, "give the variable's name") {
			c.says(at.Child("name"), v.Name, validation.IsRelaxedEnvVarName(v.Name))
		}
		if v.ValueFrom != nil {
			c.valueFrom(at.Child("valueFrom"), v)
		}
	}
}

func (c *checker) valueFrom(p path, v corev1.EnvVar) {
	from := v.ValueFrom
	e := &c.problems
	n := checkSet(p, []choice{
		{"fieldRef", from.FieldRef != nil, func(p path) { e.fieldRef(p, from.FieldRef, true) }},
		{"resourceFieldRef", from.ResourceFieldRef != nil, func(p path) { e.resourceFieldRef(p, from.ResourceFieldRef, true) }},
		{"configMapKeyRef", from.ConfigMapKeyRef != nil, func(p path) { e.keyOf(p, from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key) }},
		{"secretKeyRef", from.SecretKeyRef != nil, func(p path) { e.keyOf(p, from.SecretKeyRef.Name, from.SecretKeyRef.Key) }},
		{"fileKeyRef", from.FileKeyRef != nil, func(p path) { c.fileKey(p, from.FileKeyRef) }},
	})
	switch {
	case n != 1:
		e.invalid(p, v.Name, "must have one of fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef or fileKeyRef")
	case v.Value != "":
		e.invalid(p, v.Name, "there is a value already: only one can be set")
	}
}

// keyOf checks a reference to a key of a ConfigMap or a Secret.
func (e *problems) keyOf(p path, object, key string) {
	e.subdomain(p.Child("name"), object)
	if e.given(p.Child("key"), key, "say which key") {
		e.says(p.Child("key"), key, validation.IsConfigMapKey(key))
	}
}

func (c *checker) fileKey(p path, ref *corev1.FileKeySelector) {
	if c.given(p.Child("key"), ref.Key, "say which variable of the file") {
		c.says(p.Child("key"), ref.Key, validation.IsRelaxedEnvVarName(ref.Key))
	}
	if c.given(p.Child("path"), ref.Path, "give the file's path in the volume") {
		c.noBacksteps(p.Child("path"), ref.Path)
	}
	at := p.Child("volumeName")
	if !c.label(at, ref.VolumeName) {
		return
	}
	switch v := c.volumes[ref.VolumeName]; {
	case v == nil:
		c.notFound(at, ref.VolumeName, "must be one of spec.volumes")
	case v.EmptyDir == nil:
		c.invalid(at, ref.VolumeName, "must be an emptyDir")
	}
}

// fieldRef checks a reference to a field of the pod. Variables and files can have different ones.
func (e *problems) fieldRef(p path, ref *corev1.ObjectFieldSelector, variable bool) {
	if ref.APIVersion != "v1" {
		e.invalid(p.Child("apiVersion"), ref.APIVersion, "must be \"v1\"")
		return
	}
	at := p.Child("fieldPath")
	if name, subscript, ok := strings.Cut(strings.TrimSuffix(ref.FieldPath, "']"), "['"); ok && strings.HasSuffix(ref.FieldPath, "']") && name != "" {
		switch name {
		case "metadata.annotations":
			e.says(at, ref.FieldPath, validation.IsQualifiedName(strings.ToLower(subscript)))
		case "metadata.labels":
			e.says(at, ref.FieldPath, validation.IsQualifiedName(subscript))
		default:
			e.invalid(at, ref.FieldPath, "only metadata.labels and metadata.annotations have keys")
		}
		return
	}
	known := []string{"metadata.name", "metadata.namespace", "metadata.uid"}
	if variable {
		known = append(known, "spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs")
		if ref.FieldPath == "spec.host" { // what nodeName was once
			return
		}
	} else {
		known = append(known, "metadata.labels", "metadata.annotations")
	}
	oneOf(e, at, ref.FieldPath, known...)
}

// resourceFieldRef checks a reference to a container's requests or limits. A variable need not say of which container: it is its own.
func (e *problems) resourceFieldRef(p path, ref *corev1.ResourceFieldSelector, variable bool) {
	kind, name, _ := strings.Cut(ref.Resource, ".")
	sizes := []string{"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"}
	switch of := corev1.ResourceName(name); {
	case kind != "limits" && kind != "requests":
		sizes = nil
	case of == corev1.ResourceCPU:
		sizes = []string{"1m", "1"}
	case of != corev1.ResourceMemory && of != corev1.ResourceEphemeralStorage && !isHugePages(of):
		sizes = nil
	}
	switch {
	case !variable && ref.ContainerName == "":
		e.required(p.Child("containerName"), "say of which container")
	case sizes == nil:
		oneOf(e, p.Child("resource"), ref.Resource, "limits.cpu", "limits.memory", "limits.ephemeral-storage",
			"requests.cpu", "requests.memory", "requests.ephemeral-storage")
	}
	if sizes != nil && !ref.Divisor.IsZero() {
		oneOf(e, p.Child("divisor"), ref.Divisor.String(), sizes...)
	}
}

func (c *checker) envFrom(p path, sources []corev1.EnvFromSource) {
	for i, s := range sources {
		at := p.Index(i)
		if s.Prefix != "" {
			c.says(at.Child("prefix"), s.Prefix, validation.IsRelaxedEnvVarName(s.Prefix))
		}
		n := checkSet(at, []choice{
			{"configMapRef", s.ConfigMapRef != nil, func(p path) { c.objectName(p.Child("name"), s.ConfigMapRef.Name) }},
			{"secretRef", s.SecretRef != nil, func(p path) { c.objectName(p.Child("name"), s.SecretRef.Name) }},
		})
		if n != 1 {
			c.invalid(at, s.Prefix, "must have one of configMapRef or secretRef")
		}
	}
}

// objectName checks a reference to an object. As an API server does here, it lets a name pass that ends with a dash, although there is none.
func (e *problems) objectName(p path, name string) {
	if e.given(p, name, "say which one") {
		e.says(p, name, apivalidation.NameIsDNSSubdomain(name, true))
	}
}

package agent

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// refers reports whether a pod refers to an object: in its volumes, its environments or its pull secrets.
func refers(pod *corev1.Pod, ref podmill.ObjectRef) bool {
	if ref.Kind == "RuntimeClass" {
		return pod.Spec.RuntimeClassName != nil && *pod.Spec.RuntimeClassName == ref.Name
	}
	if pod.Namespace != ref.Namespace {
		return false
	}
	names := references{}
	for i := range pod.Spec.Volumes {
		names.volume(pod.Name, &pod.Spec.Volumes[i])
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			names.environment(&list[i])
		}
	}
	for _, secret := range pod.Spec.ImagePullSecrets {
		names.secrets = append(names.secrets, secret.Name)
	}
	switch ref.Kind {
	case "ConfigMap":
		return slices.Contains(names.configMaps, ref.Name)
	case "PersistentVolumeClaim":
		return slices.Contains(names.claims, ref.Name)
	}
	return slices.Contains(names.secrets, ref.Name)
}

type references struct {
	configMaps, secrets, claims []string
}

func (r *references) volume(pod string, v *corev1.Volume) {
	if v.PersistentVolumeClaim != nil {
		r.claims = append(r.claims, v.PersistentVolumeClaim.ClaimName)
	}
	if v.Ephemeral != nil {
		r.claims = append(r.claims, pod+"-"+v.Name)
	}
	if v.ConfigMap != nil {
		r.configMaps = append(r.configMaps, v.ConfigMap.Name)
	}
	if v.Secret != nil {
		r.secrets = append(r.secrets, v.Secret.SecretName)
	}
	if v.Projected == nil {
		return
	}
	for _, source := range v.Projected.Sources {
		if source.ConfigMap != nil {
			r.configMaps = append(r.configMaps, source.ConfigMap.Name)
		}
		if source.Secret != nil {
			r.secrets = append(r.secrets, source.Secret.Name)
		}
	}
}

func (r *references) environment(c *corev1.Container) {
	for _, from := range c.EnvFrom {
		if from.ConfigMapRef != nil {
			r.configMaps = append(r.configMaps, from.ConfigMapRef.Name)
		}
		if from.SecretRef != nil {
			r.secrets = append(r.secrets, from.SecretRef.Name)
		}
	}
	for _, v := range c.Env {
		if v.ValueFrom == nil {
			continue
		}
		if key := v.ValueFrom.ConfigMapKeyRef; key != nil {
			r.configMaps = append(r.configMaps, key.Name)
		}
		if key := v.ValueFrom.SecretKeyRef; key != nil {
			r.secrets = append(r.secrets, key.Name)
		}
	}
}

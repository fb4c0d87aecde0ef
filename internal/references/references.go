// Package references says which objects a pod refers to.
package references

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// Of returns the ConfigMaps, Secrets and PersistentVolumeClaims that a pod refers to: in its volumes, its environments and its pull secrets. One that is referred to
// twice may be in it twice.
func Of(pod *corev1.Pod) []podmill.ObjectRef {
	c := &collector{namespace: pod.Namespace}
	for i := range pod.Spec.Volumes {
		c.volume(pod, &pod.Spec.Volumes[i])
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			c.environment(list[i].EnvFrom, list[i].Env)
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		c.environment(pod.Spec.EphemeralContainers[i].EnvFrom, pod.Spec.EphemeralContainers[i].Env)
	}
	for _, s := range pod.Spec.ImagePullSecrets {
		c.secret(s.Name)
	}
	return c.refs
}

// OfVolume returns those that one volume of a pod is made of.
func OfVolume(pod *corev1.Pod, v *corev1.Volume) []podmill.ObjectRef {
	c := &collector{namespace: pod.Namespace}
	c.volume(pod, v)
	return c.refs
}

// Claim returns the name of the claim that a volume is, by itself or made for it; empty if it is none.
func Claim(pod *corev1.Pod, v *corev1.Volume) string {
	switch {
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil:
		return pod.Name + "-" + v.Name
	}
	return ""
}

type collector struct {
	namespace string
	refs      []podmill.ObjectRef
}

func (c *collector) configMap(name string) { c.add("ConfigMap", name) }
func (c *collector) secret(name string)    { c.add("Secret", name) }

func (c *collector) add(kind, name string) {
	if name != "" {
		c.refs = append(c.refs, podmill.ObjectRef{Kind: kind, Namespace: c.namespace, Name: name})
	}
}

func (c *collector) volume(pod *corev1.Pod, v *corev1.Volume) {
	c.add("PersistentVolumeClaim", Claim(pod, v))
	if v.ConfigMap != nil {
		c.configMap(v.ConfigMap.Name)
	}
	if v.Secret != nil {
		c.secret(v.Secret.SecretName)
	}
	if v.Projected == nil {
		return
	}
	for _, source := range v.Projected.Sources {
		if source.ConfigMap != nil {
			c.configMap(source.ConfigMap.Name)
		}
		if source.Secret != nil {
			c.secret(source.Secret.Name)
		}
	}
}

func (c *collector) environment(from []corev1.EnvFromSource, vars []corev1.EnvVar) {
	for _, f := range from {
		if f.ConfigMapRef != nil {
			c.configMap(f.ConfigMapRef.Name)
		}
		if f.SecretRef != nil {
			c.secret(f.SecretRef.Name)
		}
	}
	for _, v := range vars {
		if v.ValueFrom == nil {
			continue
		}
		if key := v.ValueFrom.ConfigMapKeyRef; key != nil {
			c.configMap(key.Name)
		}
		if key := v.ValueFrom.SecretKeyRef; key != nil {
			c.secret(key.Name)
		}
	}
}

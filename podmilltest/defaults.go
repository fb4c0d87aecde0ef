package podmilltest

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// setDefaults fills in what an API server would, as far as an agent looks at it.
func setDefaults(pod *corev1.Pod) {
	s := &pod.Spec
	or(&s.RestartPolicy, corev1.RestartPolicyAlways)
	or(&s.DNSPolicy, corev1.DNSClusterFirst)
	or(&s.SchedulerName, corev1.DefaultSchedulerName)
	orPointer(&s.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	orPointer(&s.EnableServiceLinks, corev1.DefaultEnableServiceLinks)
	orPointer(&s.SecurityContext, corev1.PodSecurityContext{})
	for _, containers := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range containers {
			setContainerDefaults(&containers[i])
		}
	}
	for i := range s.Volumes {
		setVolumeDefaults(&s.Volumes[i])
	}
}

func setContainerDefaults(c *corev1.Container) {
	or(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	or(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	policy := corev1.PullIfNotPresent
	if name := c.Image[strings.LastIndex(c.Image, "/")+1:]; !strings.ContainsAny(name, ":@") || strings.HasSuffix(name, ":latest") {
		policy = corev1.PullAlways
	}
	or(&c.ImagePullPolicy, policy)
	for i := range c.Ports {
		or(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for name, limit := range c.Resources.Limits {
		if _, ok := c.Resources.Requests[name]; !ok {
			if c.Resources.Requests == nil {
				c.Resources.Requests = corev1.ResourceList{}
			}
			c.Resources.Requests[name] = limit
		}
	}
	for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		if probe != nil {
			or(&probe.TimeoutSeconds, 1)
			or(&probe.PeriodSeconds, 10)
			or(&probe.SuccessThreshold, 1)
			or(&probe.FailureThreshold, 3)
		}
	}
}

func setVolumeDefaults(v *corev1.Volume) {
	switch {
	case v.ConfigMap != nil:
		orPointer(&v.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	case v.Secret != nil:
		orPointer(&v.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	case v.DownwardAPI != nil:
		orPointer(&v.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
	case v.Projected != nil:
		orPointer(&v.Projected.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
	case v.HostPath != nil:
		orPointer(&v.HostPath.Type, corev1.HostPathUnset)
	case v.VolumeSource == corev1.VolumeSource{}:
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
}

// or sets a field that is not set.
func or[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// orPointer sets a field that points nowhere.
func orPointer[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

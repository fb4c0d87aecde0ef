package podspec

import (
	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podmill/podmill/internal/lifecycle"
)

// Default fills in what a pod leaves out, in place, as an API server does when it is created. It changes nothing that is there, but for a
// negative grace period, which becomes 1 second, and quantities finer than a thousandth, which are rounded up. The status is left alone.
// What is defaulted stays the same if it is defaulted again.
func Default(pod *corev1.Pod) {
	s := &pod.Spec
	or(&s.ServiceAccountName, s.DeprecatedServiceAccount)
	s.DeprecatedServiceAccount = s.ServiceAccountName
	or(&s.RestartPolicy, corev1.RestartPolicyAlways)
	or(&s.DNSPolicy, corev1.DNSClusterFirst)
	or(&s.SchedulerName, corev1.DefaultSchedulerName)
	orPointer(&s.SecurityContext, corev1.PodSecurityContext{})
	orPointer(&s.EnableServiceLinks, corev1.DefaultEnableServiceLinks)
	orPointer(&s.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	if *s.TerminationGracePeriodSeconds < 0 {
		*s.TerminationGracePeriodSeconds = 1
	}
	for i := range s.Volumes {
		defaultVolume(&s.Volumes[i].VolumeSource)
	}
	for c := range lifecycle.Containers(pod) {
		defaultContainer(c, s.HostNetwork)
	}
	round(s.Overhead)
	if s.Resources != nil {
		round(s.Resources.Limits)
		round(s.Resources.Requests)
		defaultPodResources(pod)
	}
}

func defaultContainer(c *corev1.Container, hostNetwork bool) {
	or(&c.ImagePullPolicy, pullPolicy(c.Image))
	or(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	or(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range c.Ports {
		or(&c.Ports[i].Protocol, corev1.ProtocolTCP)
		if hostNetwork {
			or(&c.Ports[i].HostPort, c.Ports[i].ContainerPort)
		}
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil {
			defaultFieldRef(from.FieldRef)
			if from.FileKeyRef != nil {
				orPointer(&from.FileKeyRef.Optional, false)
			}
		}
	}
	defaultResources(&c.Resources)
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if probe != nil {
			defaultProbe(probe)
		}
	}
	if c.Lifecycle != nil {
		for _, hook := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if hook != nil {
				defaultHTTPGet(hook.HTTPGet)
			}
		}
	}
}

// pullPolicy is Always for what is tagged latest, which is also what a name without tag and digest means.
func pullPolicy(image string) corev1.PullPolicy {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return corev1.PullIfNotPresent // Validate has to do with it
	}
	if tagged, ok := reference.TagNameOnly(named).(reference.Tagged); ok && tagged.Tag() == "latest" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

// defaultResources makes a limit the request too, where there is none.
func defaultResources(r *corev1.ResourceRequirements) {
	round(r.Limits)
	round(r.Requests)
	if r.Limits != nil && r.Requests == nil {
		r.Requests = corev1.ResourceList{}
	}
	for name, limit := range r.Limits {
		if _, ok := r.Requests[name]; !ok {
			r.Requests[name] = limit.DeepCopy()
		}
	}
}

// round rounds up to thousandths, the finest that quantities are kept in.
func round(list corev1.ResourceList) {
	for name, quantity := range list {
		quantity.RoundUp(resource.Milli)
		list[name] = quantity
	}
}

func defaultProbe(p *corev1.Probe) {
	or(&p.TimeoutSeconds, 1)
	or(&p.PeriodSeconds, 10)
	or(&p.SuccessThreshold, 1)
	or(&p.FailureThreshold, 3)
	defaultHTTPGet(p.HTTPGet)
	if p.GRPC != nil {
		orPointer(&p.GRPC.Service, "")
	}
}

func defaultHTTPGet(get *corev1.HTTPGetAction) {
	if get != nil {
		or(&get.Path, "/")
		or(&get.Scheme, corev1.URISchemeHTTP)
	}
}

func defaultFieldRef(ref *corev1.ObjectFieldSelector) {
	if ref != nil {
		or(&ref.APIVersion, "v1")
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

package podspec

import (
	"iter"
	"math"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podmill/podmill/internal/lifecycle"
)

// Validate says what is wrong with a pod that is to be created, with its defaults filled in. It finds what an API server's validation finds.
func Validate(pod *corev1.Pod) field.ErrorList {
	c := &checker{pod: pod, spec: &pod.Spec, volumes: map[string]*corev1.VolumeSource{}}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if c.volumes[v.Name] == nil {
			c.volumes[v.Name] = &v.VolumeSource
		}
	}
	c.metadata(field.NewPath("metadata"))
	spec := field.NewPath("spec")
	c.lives(spec)
	c.hosts(spec)
	c.scheduling(spec)
	c.volumeList(spec.Child("volumes"))
	c.claims(spec.Child("resourceClaims"))
	c.containers(spec)
	c.podResources(spec)
	c.podSecurity(spec.Child("securityContext"))
	c.system(spec)
	return c.list
}

// checker collects what is wrong with a pod.
type checker struct {
	problems
	pod     *corev1.Pod
	spec    *corev1.PodSpec
	volumes map[string]*corev1.VolumeSource // by name
}

// each yields the containers and where they are. Ephemeral containers are not among them: no pod is created with any.
func (c *checker) each(spec path) iter.Seq2[path, *corev1.Container] {
	return func(yield func(path, *corev1.Container) bool) {
		i := 0
		for container, kind := range lifecycle.Containers(c.pod) {
			at, index := "initContainers", i
			if kind == lifecycle.App {
				at, index = "containers", i-len(c.spec.InitContainers)
			}
			if !yield(spec.Child(at).Index(index), container) {
				return
			}
			i++
		}
	}
}

// lives checks how the pod runs and ends.
func (c *checker) lives(p path) {
	s := c.spec
	oneOf(&c.problems, p.Child("restartPolicy"), s.RestartPolicy,
		corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)
	if s.TerminationGracePeriodSeconds == nil {
		c.required(p.Child("terminationGracePeriodSeconds"), "give the seconds that containers have to stop, such as 30")
	} else {
		c.notNegative(p.Child("terminationGracePeriodSeconds"), *s.TerminationGracePeriodSeconds)
	}
	if s.ActiveDeadlineSeconds != nil {
		between(&c.problems, p.Child("activeDeadlineSeconds"), *s.ActiveDeadlineSeconds, 1, math.MaxInt32)
	}
	if s.ServiceAccountName != "" {
		c.says(p.Child("serviceAccountName"), s.ServiceAccountName, apivalidation.ValidateServiceAccountName(s.ServiceAccountName, false))
	}
	if s.DeprecatedServiceAccount != s.ServiceAccountName {
		c.invalid(p.Child("serviceAccount"), s.DeprecatedServiceAccount, "must be the same as serviceAccountName, or left out")
	}
	if s.RuntimeClassName != nil {
		c.subdomain(p.Child("runtimeClassName"), *s.RuntimeClassName)
	}
	c.resourceList(p.Child("overhead"), s.Overhead, containerResourceName)
	c.hugePages(p.Child("overhead"), s.Overhead)
	for i, gate := range s.ReadinessGates {
		c.says(p.Child("readinessGates").Index(i).Child("conditionType"), gate.ConditionType, validation.IsQualifiedName(string(gate.ConditionType)))
	}
	if len(s.EphemeralContainers) > 0 {
		c.forbidden(p.Child("ephemeralContainers"), "can only be added to a pod that runs")
	}
}

// hosts checks host names, host namespaces and name resolution.
func (c *checker) hosts(p path) {
	s := c.spec
	if s.NodeName != "" {
		c.subdomain(p.Child("nodeName"), s.NodeName)
	}
	if s.Hostname != "" {
		c.label(p.Child("hostname"), s.Hostname)
	}
	if s.Subdomain != "" {
		c.label(p.Child("subdomain"), s.Subdomain)
	}
	c.hostnameOverride(p.Child("hostnameOverride"))
	for i, alias := range s.HostAliases {
		at := p.Child("hostAliases").Index(i)
		c.all(validation.IsValidIPForLegacyField(at.Child("ip"), alias.IP, true, nil))
		for j, name := range alias.Hostnames {
			c.subdomain(at.Child("hostnames").Index(j), name)
		}
	}
	c.dns(p)
	if s.ShareProcessNamespace != nil && *s.ShareProcessNamespace && s.HostPID {
		c.invalid(p.Child("shareProcessNamespace"), true, "cannot be true with hostPID: choose one")
	}
	c.hostUsers(p)
}

func (c *checker) hostnameOverride(p path) {
	s := c.spec
	if s.HostnameOverride == nil {
		return
	}
	if s.SetHostnameAsFQDN != nil && *s.SetHostnameAsFQDN {
		c.forbidden(p, "cannot be set when setHostnameAsFQDN is true")
	}
	if s.HostNetwork {
		c.forbidden(p, "cannot be set when hostNetwork is true")
	}
	if len(*s.HostnameOverride) > 64 {
		c.list = append(c.list, field.TooLong(p, "", 64))
	}
	c.subdomain(p, *s.HostnameOverride)
}

// hostUsers checks that a pod with a user namespace of its own shares none of the host's others.
func (c *checker) hostUsers(p path) {
	s := c.spec
	if c.onHostUsers() {
		return
	}
	for _, host := range []struct {
		field  string
		shared bool
	}{{"hostNetwork", s.HostNetwork}, {"hostPID", s.HostPID}, {"hostIPC", s.HostIPC}} {
		if host.shared {
			c.forbidden(p.Child(host.field), "cannot be true when hostUsers is false")
		}
	}
	for at, container := range c.each(p) {
		if len(container.VolumeDevices) > 0 {
			c.forbidden(at.Child("volumeDevices"), "cannot be used when hostUsers is false")
		}
	}
}

func (c *checker) onHostUsers() bool { return c.spec.HostUsers == nil || *c.spec.HostUsers }

// The limits of the C library's resolver.
const (
	maxNameservers    = 3
	maxSearches       = 32
	maxSearchesLength = 2048
)

func (c *checker) dns(p path) {
	oneOf(&c.problems, p.Child("dnsPolicy"), c.spec.DNSPolicy,
		corev1.DNSClusterFirst, corev1.DNSClusterFirstWithHostNet, corev1.DNSDefault, corev1.DNSNone)
	p = p.Child("dnsConfig")
	config := c.spec.DNSConfig
	if c.spec.DNSPolicy == corev1.DNSNone {
		if config == nil {
			c.required(p, "give the DNS configuration, or another dnsPolicy than None")
			return
		}
		if len(config.Nameservers) == 0 {
			c.required(p.Child("nameservers"), "give a name server, or another dnsPolicy than None")
			return
		}
	}
	if config == nil {
		return
	}
	if len(config.Nameservers) > maxNameservers {
		c.list = append(c.list, field.TooMany(p.Child("nameservers"), len(config.Nameservers), maxNameservers))
	}
	for i, server := range config.Nameservers {
		c.all(validation.IsValidIPForLegacyField(p.Child("nameservers").Index(i), server, true, nil))
	}
	c.searches(p.Child("searches"), config.Searches)
	for i, option := range config.Options {
		c.given(p.Child("options").Index(i).Child("name"), option.Name, "give the name of the option, such as \"ndots\"")
	}
}

func (c *checker) searches(p path, searches []string) {
	if len(searches) > maxSearches {
		c.list = append(c.list, field.TooMany(p, len(searches), maxSearches))
	}
	length := len(searches) - 1 // the spaces between them
	for i, search := range searches {
		length += len(search)
		if search == "." {
			continue
		}
		if search != "" && search[len(search)-1] == '.' {
			search = search[:len(search)-1]
		}
		c.says(p.Index(i), search, validation.IsDNS1123SubdomainWithUnderscore(search))
	}
	if length > maxSearchesLength {
		c.list = append(c.list, field.TooLong(p, "", maxSearchesLength))
	}
}

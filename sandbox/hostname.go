package sandbox

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Linux takes 64 characters for a host name. The kubelet gives a name 63, as a DNS label has, and only what is meant to be longer 64.
const (
	maxHostname = 63
	maxNodename = 64
)

// hostname returns the host name of a pod: its spec.hostname or else its name, cut to fit, with the domain behind it where
// the pod wants that. A pod in the host's network has the host's.
func hostname(pod *corev1.Pod, clusterDomain string) (string, error) {
	spec := &pod.Spec
	if spec.HostNetwork {
		return "", nil
	}
	if spec.HostnameOverride != nil && *spec.HostnameOverride != "" {
		return override(*spec.HostnameOverride)
	}
	whole, field := pod.Name, "metadata.name"
	if spec.Hostname != "" {
		whole, field = spec.Hostname, "spec.hostname"
	}
	name := cutHostname(whole)
	if name == "" {
		return "", fmt.Errorf("%s: nothing of %q can be a host name", field, whole)
	}
	if spec.Hostname != "" {
		if err := invalid(field, name, validation.IsDNS1123Label(name)); err != nil {
			return "", err
		}
	}
	if spec.Subdomain == "" || spec.SetHostnameAsFQDN == nil || !*spec.SetHostnameAsFQDN {
		return name, nil
	}
	return qualify(name, pod, clusterDomain)
}

// domain returns what the name of a pod with a subdomain ends in. A name that overrides it stands alone.
func domain(pod *corev1.Pod, clusterDomain string) string {
	spec := &pod.Spec
	if spec.Subdomain == "" || spec.HostNetwork || spec.HostnameOverride != nil && *spec.HostnameOverride != "" {
		return ""
	}
	return strings.TrimSuffix(spec.Subdomain+"."+pod.Namespace+".svc."+clusterDomain, ".")
}

// cutHostname cuts a name to 63 characters. What it ends in then may be a character that a host name cannot end in.
func cutHostname(name string) string {
	if len(name) <= maxHostname {
		return name
	}
	return strings.TrimRight(name[:maxHostname], "-.")
}

// override returns spec.hostnameOverride, which stands alone: it has no domain and is not cut.
func override(name string) (string, error) {
	const field = "spec.hostnameOverride"
	if len(name) > maxNodename {
		return "", fmt.Errorf("%s: %q has %d characters, at most %d are allowed", field, name, len(name), maxNodename)
	}
	return name, invalid(field, name, validation.IsDNS1123Subdomain(name))
}

// qualify puts a pod's domain behind its name.
func qualify(name string, pod *corev1.Pod, clusterDomain string) (string, error) {
	if err := invalid("spec.subdomain", pod.Spec.Subdomain, validation.IsDNS1123Label(pod.Spec.Subdomain)); err != nil {
		return "", err
	}
	fqdn := name + "." + domain(pod, clusterDomain)
	if len(fqdn) > maxNodename {
		return "", fmt.Errorf("spec.setHostnameAsFQDN: %s has %d characters, at most %d are allowed", fqdn, len(fqdn), maxNodename)
	}
	return fqdn, nil
}

// invalid makes an error of what validation says of a field, nil if it says nothing.
func invalid(field, value string, messages []string) error {
	if len(messages) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %q: %s", field, value, strings.Join(messages, "; "))
}

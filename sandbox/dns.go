package sandbox

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podmill/podmill"
)

// What a resolv.conf may hold: the C library reads three servers, and the API allows as many search domains and characters (KEP-2595).
const (
	maxServers      = 3
	maxSearches     = 32
	maxSearchChars  = 2048
	maxSearchLength = validation.DNS1123SubdomainMaxLength // some C libraries abort on a longer one
)

// The kubelet's reasons of events.
const (
	dnsConfigForming        = "DNSConfigForming"
	missingClusterDNSReason = "MissingClusterDNS"
)

// clusterDNS is what the DNS policy ClusterFirst is made of.
type clusterDNS struct {
	servers []netip.Addr
	domain  string
}

// warning is something that people should know of a spec. A pure function cannot tell them.
type warning struct {
	reason  string
	message string
}

// dnsPolicy returns the policy that a pod's configuration is made by. A pod in the host's network that asks for the cluster's DNS gets the
// host's, unless it insists.
func dnsPolicy(pod *corev1.Pod) (corev1.DNSPolicy, error) {
	switch policy := pod.Spec.DNSPolicy; policy {
	case corev1.DNSClusterFirst, "":
		if pod.Spec.HostNetwork {
			return corev1.DNSDefault, nil
		}
		return corev1.DNSClusterFirst, nil
	case corev1.DNSClusterFirstWithHostNet:
		return corev1.DNSClusterFirst, nil
	case corev1.DNSDefault, corev1.DNSNone:
		return policy, nil
	default:
		return "", fmt.Errorf("spec.dnsPolicy: there is no policy %q", policy)
	}
}

// podDNS makes a pod's DNS configuration from its policy, from the cluster's and the host's, and from its own dnsConfig, which adds servers and search
// domains and wins over options. host may be nil under the policy None.
func podDNS(pod *corev1.Pod, cluster clusterDNS, host *podmill.DNS) (*podmill.DNS, []warning, error) {
	policy, err := dnsPolicy(pod)
	if err != nil {
		return nil, nil, err
	}
	var warnings []warning
	if policy == corev1.DNSClusterFirst && len(cluster.servers) == 0 {
		policy = corev1.DNSDefault
		warnings = append(warnings, missingClusterDNS(pod))
	}
	dns := &podmill.DNS{}
	switch policy {
	case corev1.DNSClusterFirst:
		dns = cluster.first(pod.Namespace, host.Searches)
	case corev1.DNSDefault:
		dns = &podmill.DNS{
			Servers: slices.Clone(host.Servers), Searches: slices.Clone(host.Searches), Options: slices.Clone(host.Options),
		}
	}
	if own := pod.Spec.DNSConfig; own != nil {
		dns.Servers = append(dns.Servers, own.Nameservers...)
		dns.Searches = append(dns.Searches, own.Searches...)
		for _, option := range own.Options {
			dns.Options = mergeOption(dns.Options, optionOf(option))
		}
	}
	dns.Servers, dns.Searches = unique(dns.Servers), unique(dns.Searches)
	return dns, append(warnings, fit(dns)...), nil
}

// first returns the configuration that asks the cluster first: its servers alone, for they pass on what is not the cluster's, its domains
// before the host's, and enough dots that a service's short name is searched before it is asked for as it is.
func (c clusterDNS) first(namespace string, hostSearches []string) *podmill.DNS {
	dns := &podmill.DNS{Options: []string{"ndots:5"}}
	for _, server := range c.servers {
		dns.Servers = append(dns.Servers, server.String())
	}
	if c.domain != "" {
		dns.Searches = []string{namespace + ".svc." + c.domain, "svc." + c.domain, c.domain}
	}
	dns.Searches = append(dns.Searches, hostSearches...)
	return dns
}

// missingClusterDNS says, in the kubelet's words, that ClusterFirst became Default.
func missingClusterDNS(pod *corev1.Pod) warning {
	return warning{missingClusterDNSReason, fmt.Sprintf(
		"pod: %q. kubelet does not have ClusterDNS IP configured and cannot create Pod using %q policy. Falling back to %q policy.",
		fmt.Sprintf("%s_%s(%s)", pod.Name, pod.Namespace, pod.UID), corev1.DNSClusterFirst, corev1.DNSDefault)}
}

// fit cuts a configuration to what a resolver takes, and says so.
func fit(dns *podmill.DNS) (warnings []warning) {
	if len(dns.Servers) > maxServers {
		dns.Servers = dns.Servers[:maxServers]
		warnings = append(warnings, warning{dnsConfigForming, "Nameserver limits were exceeded, some nameservers have been omitted, " +
			"the applied nameserver line is: " + strings.Join(dns.Servers, " ")})
	}
	if fitting := fittingSearches(dns.Searches); len(fitting) < len(dns.Searches) {
		dns.Searches = fitting
		warnings = append(warnings, warning{dnsConfigForming, "Search Line limits were exceeded, some search paths have been omitted, " +
			"the applied search line is: " + strings.Join(dns.Searches, " ")})
	}
	return warnings
}

// fittingSearches returns the search domains, without those that are too long, up to where they are too many.
func fittingSearches(searches []string) (fitting []string) {
	chars := -1 // the first has no space before it
	for _, domain := range searches[:min(maxSearches, len(searches))] {
		if len(domain) > maxSearchLength {
			continue
		}
		if chars += 1 + len(domain); chars > maxSearchChars {
			break
		}
		fitting = append(fitting, domain)
	}
	return fitting
}

// unique returns the strings without repeats, in their order.
func unique(in []string) (out []string) {
	for _, s := range in {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

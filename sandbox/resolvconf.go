package sandbox

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// maxResolvConf is far more than any resolver reads.
const maxResolvConf = 1 << 20

// readResolvConf reads the node's resolv.conf.
func readResolvConf(path string) (*podmill.DNS, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the node's DNS configuration: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxResolvConf+1))
	if err != nil {
		return nil, fmt.Errorf("read the node's DNS configuration: %w", err)
	}
	if len(data) > maxResolvConf {
		return nil, fmt.Errorf("read the node's DNS configuration: %s is larger than %d bytes", path, maxResolvConf)
	}
	return parseResolvConf(string(data)), nil
}

// parseResolvConf reads a resolv.conf as resolv.conf(5) and the kubelet have it: name servers add up, of several search lines the
// last counts, options add up and the last of a name counts. What it does not understand it passes over, as a resolver does.
func parseResolvConf(text string) *podmill.DNS {
	dns := &podmill.DNS{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		// A comment's first word is none of these.
		switch values := fields[1:]; fields[0] {
		case "nameserver":
			dns.Servers = append(dns.Servers, values[:min(1, len(values))]...)
		case "search":
			dns.Searches = nil
			for _, domain := range values {
				dns.Searches = append(dns.Searches, withoutDot(domain))
			}
		case "options":
			for _, option := range values {
				dns.Options = mergeOption(dns.Options, option)
			}
		}
	}
	return dns
}

// withoutDot returns a domain without its final dot, so that a domain counts once however it is written. The root stays: it says
// that nothing is searched.
func withoutDot(domain string) string {
	if domain == "." {
		return domain
	}
	return strings.TrimSuffix(domain, ".")
}

// mergeOption adds an option, in place of one of the same name.
func mergeOption(options []string, option string) []string {
	name, _, _ := strings.Cut(option, ":")
	i := slices.IndexFunc(options, func(o string) bool {
		other, _, _ := strings.Cut(o, ":")
		return other == name
	})
	if i < 0 {
		return append(options, option)
	}
	options[i] = option
	return options
}

// optionOf writes a pod's option as a resolv.conf has it.
func optionOf(o corev1.PodDNSConfigOption) string {
	if o.Value == nil || *o.Value == "" {
		return o.Name
	}
	return o.Name + ":" + *o.Value
}

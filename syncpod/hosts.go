package syncpod

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// writeHosts writes the file that a pod's containers see as /etc/hosts, and returns its path; empty if they see what the runtime gives
// them: a pod in the host's network that adds nothing, and one whose address is not known.
func (s *Syncer) writeHosts(pod *corev1.Pod, spec *podmill.SandboxSpec, ips []string) (string, error) {
	dir, err := s.podDir(pod.UID)
	if err != nil || dir == "" {
		return "", err
	}
	var head string
	switch {
	case pod.Spec.HostNetwork && len(pod.Spec.HostAliases) > 0:
		node, err := os.ReadFile(hostsPath)
		if err != nil {
			return "", err
		}
		head = "# Kubernetes-managed hosts file (host network).\n" + string(node)
	case !pod.Spec.HostNetwork && len(ips) > 0:
		head = podHosts(spec.Hostname, spec.Domain, ips)
	default:
		return "", nil
	}
	path, content := filepath.Join(dir, hostsFile), []byte(head+aliases(pod))
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) { //nolint:gosec // ours
		return path, nil
	}
	// In place: a container that runs has the file itself mounted.
	return path, os.WriteFile(path, content, 0o644) //nolint:gosec // every user of the container reads it
}

// podHosts names the pod at its addresses: where it has a domain, by the whole name first, whether or not that is its host name.
func podHosts(hostname, domain string, ips []string) string {
	names := hostname
	if domain != "" {
		short := strings.TrimSuffix(hostname, "."+domain)
		names = short + "." + domain + "\t" + short
	}
	var b strings.Builder
	b.WriteString("# Kubernetes-managed hosts file.\n" +
		"127.0.0.1\tlocalhost\n" +
		"::1\tlocalhost ip6-localhost ip6-loopback\n" +
		"fe00::0\tip6-localnet\n" +
		"fe00::0\tip6-mcastprefix\n" +
		"fe00::1\tip6-allnodes\n" +
		"fe00::2\tip6-allrouters\n")
	for _, ip := range ips {
		b.WriteString(ip + "\t" + names + "\n")
	}
	return b.String()
}

func aliases(pod *corev1.Pod) string {
	if len(pod.Spec.HostAliases) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n# Entries added by HostAliases.\n")
	for _, alias := range pod.Spec.HostAliases {
		b.WriteString(alias.IP + "\t" + strings.Join(alias.Hostnames, "\t") + "\n")
	}
	return b.String()
}

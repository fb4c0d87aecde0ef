package sandbox

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// safeSysctls are in namespaces of the pod's own, and can do no other pod harm: Kubernetes' list.
func safeSysctls() []string {
	return []string{
		"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range",
		"net.ipv4.ip_unprivileged_port_start", "net.ipv4.ip_local_reserved_ports", "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout",
		"net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem",
		"net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_notsent_lowat",
	}
}

// checkSysctls refuses a sysctl that is neither safe nor allowed, and one of a namespace that the pod shares with the host.
func checkSysctls(pod *corev1.Pod, allowed []string) error {
	sc := pod.Spec.SecurityContext
	if sc == nil {
		return nil
	}
	for i, sysctl := range sc.Sysctls {
		name := dotted(sysctl.Name)
		refuse := func(why string) error {
			return fmt.Errorf("spec.securityContext.sysctls[%d].name: %q %s", i, sysctl.Name, why)
		}
		matches := func(pattern string) bool {
			prefix, open := strings.CutSuffix(dotted(pattern), "*")
			return name == prefix || open && strings.HasPrefix(name, prefix)
		}
		switch {
		case strings.HasPrefix(name, "net.") && pod.Spec.HostNetwork:
			return refuse("would be the host's, whose network the pod is in")
		case (strings.HasPrefix(name, "kernel.") || strings.HasPrefix(name, "fs.mqueue.")) && pod.Spec.HostIPC:
			return refuse("would be the host's, whose IPC the pod is in")
		case !slices.Contains(safeSysctls(), name) && !slices.ContainsFunc(allowed, matches):
			return refuse("is neither safe nor allowed here")
		}
	}
	return nil
}

// dotted returns a sysctl's name with dots. Where it is written with slashes, as sysctl(8) takes it too, the two change places.
func dotted(name string) string {
	if i := strings.IndexAny(name, "./"); i >= 0 && name[i] == '/' {
		return strings.NewReplacer("/", ".", ".", "/").Replace(name)
	}
	return name
}

package cri

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/lifecycle"
)

// translation makes CRI's messages of specs. Its methods are pure; what they return shares slices and maps with the spec.
type translation struct {
	cpuPeriod   int64  // microseconds
	seccompRoot string // of Localhost profiles
	memoryQoS   memoryQoS
	swap        swap
	host        host
}

// sandbox returns what CRI is told of a sandbox.
func (t *translation) sandbox(spec *podmill.SandboxSpec) (*runtimeapi.PodSandboxConfig, error) {
	pod := spec.Pod
	if spec.Labels[podmill.LabelPodUID] != string(pod.UID) || pod.UID == "" {
		return nil, refuseSandbox(spec, "labels", "without "+podmill.LabelPodUID+" the sandbox would not be found again")
	}
	security, err := sandboxSecurity(spec)
	if err != nil {
		return nil, err
	}
	config := &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: pod.Name, Namespace: pod.Namespace, Uid: string(pod.UID), Attempt: spec.Attempt},
		LogDirectory: spec.LogDirectory,
		Labels:       spec.Labels,
		Annotations:  spec.Annotations,
		Linux: &runtimeapi.LinuxPodSandboxConfig{
			CgroupParent:    spec.CgroupParent,
			SecurityContext: security,
			Sysctls:         sysctls(pod.Spec.SecurityContext),
			Overhead:        t.overhead(pod),
			Resources:       t.podResources(pod),
		},
	}
	if d := spec.DNS; d != nil {
		config.DnsConfig = &runtimeapi.DNSConfig{Servers: d.Servers, Searches: d.Searches, Options: d.Options}
	}
	if pod.Spec.HostNetwork {
		return config, nil // and neither a host name, which would be the host's, nor ports, which are
	}
	config.Hostname = spec.Hostname
	config.PortMappings, err = ports(spec)
	return config, err
}

// namespaces says which namespaces a pod shares with the host, and which its containers share with each other.
func namespaces(spec *podmill.SandboxSpec) (*runtimeapi.NamespaceOption, error) {
	s := &spec.Pod.Spec
	n := &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_POD, Ipc: runtimeapi.NamespaceMode_POD, Pid: runtimeapi.NamespaceMode_CONTAINER}
	if s.HostNetwork {
		n.Network = runtimeapi.NamespaceMode_NODE
	}
	if s.HostIPC {
		n.Ipc = runtimeapi.NamespaceMode_NODE
	}
	switch {
	case s.HostPID:
		n.Pid = runtimeapi.NamespaceMode_NODE
	case s.ShareProcessNamespace != nil && *s.ShareProcessNamespace:
		n.Pid = runtimeapi.NamespaceMode_POD
	}
	switch m := spec.IDMappings; {
	case m != nil:
		n.UsernsOptions = &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_POD, Uids: mappings(m.UIDs), Gids: mappings(m.GIDs)}
	case s.HostUsers != nil && !*s.HostUsers:
		return nil, refuseSandbox(spec, "hostUsers", "the pod wants a user namespace of its own and was given no IDs for it")
	}
	return n, nil
}

func mappings(all []podmill.IDMapping) []*runtimeapi.IDMapping {
	var out []*runtimeapi.IDMapping
	for _, m := range all {
		out = append(out, &runtimeapi.IDMapping{ContainerId: m.Container, HostId: m.Host, Length: m.Length})
	}
	return out
}

// sandboxSecurity is the security context of the sandbox itself, whose only process is the runtime's.
func sandboxSecurity(spec *podmill.SandboxSpec) (*runtimeapi.LinuxSandboxSecurityContext, error) {
	namespaces, err := namespaces(spec)
	if err != nil {
		return nil, err
	}
	out := &runtimeapi.LinuxSandboxSecurityContext{
		NamespaceOptions: namespaces,
		Seccomp:          &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault},
		Privileged:       anyPrivileged(spec.Pod),
	}
	sc := spec.Pod.Spec.SecurityContext
	if sc == nil {
		return out, nil
	}
	if p := sc.SupplementalGroupsPolicy; p != nil && *p != corev1.SupplementalGroupsPolicyMerge && *p != corev1.SupplementalGroupsPolicyStrict {
		return nil, refuseSandbox(spec, "securityContext.supplementalGroupsPolicy", string(*p)+" is not known")
	}
	ids := []*int64{sc.RunAsUser, sc.RunAsGroup, sc.FSGroup}
	for i := range sc.SupplementalGroups {
		ids = append(ids, &sc.SupplementalGroups[i])
	}
	if id := outOfRange(ids...); id != nil {
		return nil, refuseSandbox(spec, "securityContext", fmt.Sprintf("%d is no ID of a user or group", *id))
	}
	out.SelinuxOptions = selinux(sc.SELinuxOptions)
	out.SupplementalGroups, out.SupplementalGroupsPolicy = groups(sc)
	if sc.RunAsUser != nil { // CRI takes no group without a user
		out.RunAsUser, out.RunAsGroup = int64Value(sc.RunAsUser), int64Value(sc.RunAsGroup)
	}
	return out, nil
}

func anyPrivileged(pod *corev1.Pod) bool {
	for c := range lifecycle.Containers(pod) {
		if sc := c.SecurityContext; sc != nil && isTrue(sc.Privileged) {
			return true
		}
	}
	return false
}

// sysctls returns the names with dots: with slashes, as sysctl(8) takes them too, the two change places.
func sysctls(sc *corev1.PodSecurityContext) map[string]string {
	if sc == nil || len(sc.Sysctls) == 0 {
		return nil
	}
	out := make(map[string]string, len(sc.Sysctls))
	for _, s := range sc.Sysctls {
		name := s.Name
		if i := strings.IndexAny(name, "./"); i >= 0 && name[i] == '/' {
			name = strings.NewReplacer("/", ".", ".", "/").Replace(name)
		}
		out[name] = s.Value
	}
	return out
}

// ports are those of the pod's running containers that are to be reached at the node's address. Init containers have ended by then, and may
// have asked for the same.
func ports(spec *podmill.SandboxSpec) ([]*runtimeapi.PortMapping, error) {
	var out []*runtimeapi.PortMapping
	for c, kind := range lifecycle.Containers(spec.Pod) {
		if kind == lifecycle.Init {
			continue
		}
		for _, p := range c.Ports {
			if p.HostPort <= 0 {
				continue
			}
			mapping := &runtimeapi.PortMapping{ContainerPort: p.ContainerPort, HostPort: p.HostPort, HostIp: p.HostIP}
			switch p.Protocol {
			case corev1.ProtocolTCP, "":
				mapping.Protocol = runtimeapi.Protocol_TCP
			case corev1.ProtocolUDP:
				mapping.Protocol = runtimeapi.Protocol_UDP
			case corev1.ProtocolSCTP:
				mapping.Protocol = runtimeapi.Protocol_SCTP
			default:
				return nil, refuseSandbox(spec, "ports of container "+c.Name, "protocol "+string(p.Protocol)+" is not known")
			}
			out = append(out, mapping)
		}
	}
	return out, nil
}

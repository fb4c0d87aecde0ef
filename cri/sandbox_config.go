package cri

import (
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill"
)

// translation makes CRI's messages of specs. Its methods are pure.
type translation struct {
	cpuPeriod   int64  // microseconds
	seccompRoot string // of Localhost profiles
}

// sandbox returns what CRI is told of a sandbox.
func (t *translation) sandbox(spec *podmill.SandboxSpec) (*runtimeapi.PodSandboxConfig, error) {
	pod := spec.Pod
	namespaces, err := namespaces(spec)
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
			SecurityContext: sandboxSecurity(pod, namespaces),
			Overhead:        t.resources(pod.Spec.Overhead, pod.Spec.Overhead),
			Resources:       t.podResources(pod),
		},
	}
	if !pod.Spec.HostNetwork {
		// A host name in the host's network would be the host's; runtimes refuse it.
		config.Hostname = spec.Hostname
		config.PortMappings = ports(pod)
	}
	if d := spec.DNS; d != nil {
		config.DnsConfig = &runtimeapi.DNSConfig{Servers: d.Servers, Searches: d.Searches, Options: d.Options}
	}
	if sc := pod.Spec.SecurityContext; sc != nil && len(sc.Sysctls) > 0 {
		config.Linux.Sysctls = map[string]string{}
		for _, s := range sc.Sysctls {
			config.Linux.Sysctls[s.Name] = s.Value
		}
	}
	return config, nil
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
		return nil, refuse(spec.Pod, "spec.hostUsers", "the pod wants a user namespace of its own and was given no IDs for it")
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
func sandboxSecurity(pod *corev1.Pod, namespaces *runtimeapi.NamespaceOption) *runtimeapi.LinuxSandboxSecurityContext {
	out := &runtimeapi.LinuxSandboxSecurityContext{
		NamespaceOptions: namespaces,
		Seccomp:          &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault},
		Privileged:       anyPrivileged(pod),
	}
	sc := pod.Spec.SecurityContext
	if sc == nil {
		return out
	}
	out.SelinuxOptions = selinux(sc.SELinuxOptions)
	out.RunAsUser, out.RunAsGroup = int64Value(sc.RunAsUser), int64Value(sc.RunAsGroup)
	if out.RunAsUser == nil {
		out.RunAsGroup = nil // CRI takes no group without a user
	}
	out.SupplementalGroups, out.SupplementalGroupsPolicy = groups(sc)
	return out
}

func anyPrivileged(pod *corev1.Pod) bool {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if sc := list[i].SecurityContext; sc != nil && sc.Privileged != nil && *sc.Privileged {
				return true
			}
		}
	}
	return false
}

// ports are those of the pod's containers that are to be reached at the node's address.
func ports(pod *corev1.Pod) []*runtimeapi.PortMapping {
	var out []*runtimeapi.PortMapping
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			for _, p := range list[i].Ports {
				if p.HostPort > 0 {
					out = append(out, &runtimeapi.PortMapping{
						Protocol: protocol(p.Protocol), ContainerPort: p.ContainerPort, HostPort: p.HostPort, HostIp: p.HostIP,
					})
				}
			}
		}
	}
	return out
}

func protocol(p corev1.Protocol) runtimeapi.Protocol {
	switch p {
	case corev1.ProtocolUDP:
		return runtimeapi.Protocol_UDP
	case corev1.ProtocolSCTP:
		return runtimeapi.Protocol_SCTP
	default:
		return runtimeapi.Protocol_TCP
	}
}

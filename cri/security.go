package cri

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill"
)

// security returns the security context of a container: the container's own fields, and the pod's where it has none.
func (t *translation) security(spec *podmill.ContainerSpec) (*runtimeapi.LinuxContainerSecurityContext, error) {
	pod, own := spec.Sandbox.Pod, spec.Container.SecurityContext
	if own == nil {
		own = &corev1.SecurityContext{}
	}
	shared := pod.Spec.SecurityContext
	if shared == nil {
		shared = &corev1.PodSecurityContext{}
	}
	namespaces, err := namespaces(spec.Sandbox)
	if err != nil {
		return nil, err
	}
	if spec.TargetID != "" {
		namespaces.Pid, namespaces.TargetId = runtimeapi.NamespaceMode_TARGET, spec.TargetID
	}
	out := &runtimeapi.LinuxContainerSecurityContext{
		NamespaceOptions: namespaces,
		Privileged:       isTrue(own.Privileged),
		ReadonlyRootfs:   isTrue(own.ReadOnlyRootFilesystem),
		NoNewPrivs:       own.AllowPrivilegeEscalation != nil && !*own.AllowPrivilegeEscalation,
		SelinuxOptions:   selinux(either(own.SELinuxOptions, shared.SELinuxOptions)),
	}
	out.SupplementalGroups, out.SupplementalGroupsPolicy = groups(shared)
	if c := own.Capabilities; c != nil {
		out.Capabilities = &runtimeapi.Capability{AddCapabilities: capabilities(c.Add), DropCapabilities: capabilities(c.Drop)}
	}
	if own.ProcMount == nil || *own.ProcMount != corev1.UnmaskedProcMount {
		out.MaskedPaths, out.ReadonlyPaths = slices.Concat(maskedPaths(), t.host.masked), readonlyPaths()
	}
	if err := user(spec, out); err != nil {
		return nil, err
	}
	if out.Seccomp, err = t.seccomp(spec, either(own.SeccompProfile, shared.SeccompProfile)); err != nil {
		return nil, err
	}
	if out.Apparmor, err = appArmor(spec, either(own.AppArmorProfile, shared.AppArmorProfile)); err != nil {
		return nil, err
	}
	return out, nil
}

// maskedPaths and readonlyPaths are what a container must not see, or not change, of the kernel's file systems unless it has
// an unmasked /proc.
func maskedPaths() []string {
	return []string{
		"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
		"/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap",
	}
}

func readonlyPaths() []string {
	return []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
}

// user says who the container runs as. Nobody is the image's own user.
func user(spec *podmill.ContainerSpec, out *runtimeapi.LinuxContainerSecurityContext) error {
	u := spec.User
	if u == nil {
		return nil
	}
	if id := outOfRange(u.UID, u.GID); id != nil {
		return refuse(spec, "user", fmt.Sprintf("%d is no ID of a user or group", *id))
	}
	out.RunAsUser, out.RunAsGroup = int64Value(u.UID), int64Value(u.GID)
	if u.UID == nil {
		out.RunAsUsername = u.Name
	}
	if u.GID != nil && u.UID == nil && u.Name == "" {
		return refuse(spec, "securityContext.runAsGroup", "a group needs a user, set runAsUser too")
	}
	return nil
}

// outOfRange returns the first ID that Kubernetes does not take. Old runtimes take what is too large for another, such as root
// (CVE-2024-40635).
func outOfRange(ids ...*int64) *int64 {
	for _, id := range ids {
		if id != nil && (*id < 0 || *id > math.MaxInt32) {
			return id
		}
	}
	return nil
}

// groups are the groups of a pod's processes beside their own.
func groups(sc *corev1.PodSecurityContext) ([]int64, runtimeapi.SupplementalGroupsPolicy) {
	var out []int64
	if sc.FSGroup != nil {
		out = append(out, *sc.FSGroup)
	}
	policy := runtimeapi.SupplementalGroupsPolicy_Merge
	if sc.SupplementalGroupsPolicy != nil && *sc.SupplementalGroupsPolicy == corev1.SupplementalGroupsPolicyStrict {
		policy = runtimeapi.SupplementalGroupsPolicy_Strict
	}
	return append(out, sc.SupplementalGroups...), policy
}

func selinux(o *corev1.SELinuxOptions) *runtimeapi.SELinuxOption {
	if o == nil {
		return nil
	}
	return &runtimeapi.SELinuxOption{User: o.User, Role: o.Role, Type: o.Type, Level: o.Level}
}

func capabilities(all []corev1.Capability) []string {
	var out []string
	for _, c := range all {
		out = append(out, string(c))
	}
	return out
}

func either[T any](own, shared *T) *T {
	if own != nil {
		return own
	}
	return shared
}

func isTrue(b *bool) bool { return b != nil && *b }

func int64Value(v *int64) *runtimeapi.Int64Value {
	if v == nil {
		return nil
	}
	return &runtimeapi.Int64Value{Value: *v}
}

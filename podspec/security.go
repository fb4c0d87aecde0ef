package podspec

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

func (c *checker) podSecurity(p path) {
	s := c.spec.SecurityContext
	if s == nil {
		return
	}
	e := &c.problems
	e.user(p.Child("runAsUser"), s.RunAsUser)
	e.group(p.Child("runAsGroup"), s.RunAsGroup)
	e.group(p.Child("fsGroup"), s.FSGroup)
	for i := range s.SupplementalGroups {
		e.group(p.Child("supplementalGroups").Index(i), &s.SupplementalGroups[i])
	}
	maybeOneOf(e, p.Child("fsGroupChangePolicy"), s.FSGroupChangePolicy,
		corev1.FSGroupChangeAlways, corev1.FSGroupChangeOnRootMismatch)
	maybeOneOf(e, p.Child("supplementalGroupsPolicy"), s.SupplementalGroupsPolicy,
		corev1.SupplementalGroupsPolicyMerge, corev1.SupplementalGroupsPolicyStrict)
	maybeOneOf(e, p.Child("seLinuxChangePolicy"), s.SELinuxChangePolicy,
		corev1.SELinuxChangePolicyMountOption, corev1.SELinuxChangePolicyRecursive)
	c.sysctls(p.Child("sysctls"), s.Sysctls)
	e.seccomp(p.Child("seccompProfile"), s.SeccompProfile)
	e.appArmor(p.Child("appArmorProfile"), s.AppArmorProfile)
	e.windowsOptions(p.Child("windowsOptions"), s.WindowsOptions)
	if annotation, ok := c.pod.Annotations[corev1.SeccompPodAnnotationKey]; ok && s.SeccompProfile != nil {
		e.seccompAgrees(p.Child("seccompProfile"), s.SeccompProfile, annotation)
	}
}

func (c *checker) containerSecurity(p path, container *corev1.Container) {
	s := container.SecurityContext
	if s == nil {
		c.appArmorAgrees(p.Child("appArmorProfile"), container)
		return
	}
	e := &c.problems
	e.user(p.Child("runAsUser"), s.RunAsUser)
	e.group(p.Child("runAsGroup"), s.RunAsGroup)
	maybeOneOf(e, p.Child("procMount"), s.ProcMount, corev1.DefaultProcMount, corev1.UnmaskedProcMount)
	if s.ProcMount != nil && *s.ProcMount == corev1.UnmaskedProcMount && c.onHostUsers() {
		e.invalid(p.Child("procMount"), *s.ProcMount, "needs a hostUsers that is false")
	}
	if escalates := s.AllowPrivilegeEscalation; escalates != nil && !*escalates {
		at := p.Child("allowPrivilegeEscalation")
		if isPrivileged(container) {
			e.invalid(at, false, "cannot be false when privileged is true")
		}
		if s.Capabilities != nil {
			for _, capability := range s.Capabilities.Add {
				if capability == "CAP_SYS_ADMIN" {
					e.invalid(at, false, "cannot be false when the capability CAP_SYS_ADMIN is added")
				}
			}
		}
	}
	e.seccomp(p.Child("seccompProfile"), s.SeccompProfile)
	e.appArmor(p.Child("appArmorProfile"), s.AppArmorProfile)
	e.windowsOptions(p.Child("windowsOptions"), s.WindowsOptions)
	if annotation, ok := c.pod.Annotations[corev1.SeccompContainerAnnotationKeyPrefix+container.Name]; ok && s.SeccompProfile != nil {
		e.seccompAgrees(p.Child("seccompProfile"), s.SeccompProfile, annotation)
	}
	c.appArmorAgrees(p.Child("appArmorProfile"), container)
}

func isPrivileged(c *corev1.Container) bool {
	return c.SecurityContext != nil && c.SecurityContext.Privileged != nil && *c.SecurityContext.Privileged
}

// maxSysctl is how long the name of a sysctl may be.
const maxSysctl = 253

func (c *checker) sysctls(p path, sysctls []corev1.Sysctl) {
	const segment = `[a-z0-9]([-_a-z0-9]*[a-z0-9])?`
	names := map[string]bool{}
	for i, sysctl := range sysctls {
		at := p.Index(i).Child("name")
		switch {
		case !c.given(at, sysctl.Name, "give its name, such as \"net.ipv4.ip_forward\""):
		case len(sysctl.Name) > maxSysctl || !matches(`^(`+segment+`[./])*`+segment+`$`, sysctl.Name):
			c.invalid(at, sysctl.Name, fmt.Sprintf("must be a name such as \"net.ipv4.ip_forward\", at most %d characters", maxSysctl))
		case names[sysctl.Name]:
			c.duplicate(at, sysctl.Name)
		}
		names[sysctl.Name] = true
		switch sysctlNamespace(sysctl.Name) {
		case "net":
			if c.spec.HostNetwork {
				c.invalid(at, sysctl.Name, "cannot be set when hostNetwork is true")
			}
		case "ipc":
			if c.spec.HostIPC {
				c.invalid(at, sysctl.Name, "cannot be set when hostIPC is true")
			}
		}
	}
}

// sysctlNamespace returns which of a pod's namespaces has a sysctl, if it is the one of the network or of IPC.
func sysctlNamespace(name string) string {
	if i := strings.IndexAny(name, "./"); i >= 0 && name[i] == '/' { // the other way to write it: dots and slashes are exchanged
		name = strings.Map(func(r rune) rune {
			switch r {
			case '.':
				return '/'
			case '/':
				return '.'
			}
			return r
		}, name)
	}
	name, _, _ = strings.Cut(name, "*")
	if strings.HasPrefix(name, "net.") {
		return "net"
	}
	switch name {
	case "kernel.sem", "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced", "kernel.shm",
		"kernel.msgmax", "kernel.msgmnb", "kernel.msgmni", "kernel.msg":
		return "ipc"
	}
	if strings.HasPrefix(name, "fs.mqueue.") {
		return "ipc"
	}
	return ""
}

// matches compiles an expression each time: what it looks at is rare, and the package keeps no variables.
func matches(expression, text string) bool {
	return regexp.MustCompile(expression).MatchString(text)
}

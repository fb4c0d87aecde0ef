package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (c *checker) isWindows() bool { return c.spec.OS != nil && c.spec.OS.Name == corev1.Windows }

// system checks that the pod uses nothing that its operating system has not.
func (c *checker) system(p path) {
	c.hostProcess(p)
	if c.spec.OS == nil {
		return
	}
	oneOf(&c.problems, p.Child("os", "name"), c.spec.OS.Name, corev1.Linux, corev1.Windows)
	switch c.spec.OS.Name {
	case corev1.Linux:
		c.linuxOnly(p)
	case corev1.Windows:
		c.windowsOnly(p)
	}
}

func (c *checker) linuxOnly(p path) {
	if s := c.spec.SecurityContext; s != nil {
		c.absent(p.Child("securityContext"), corev1.Linux, use{"windowsOptions", s.WindowsOptions != nil})
	}
	for at, container := range c.each(p) {
		if s := container.SecurityContext; s != nil {
			c.absent(at.Child("securityContext"), corev1.Linux, use{"windowsOptions", s.WindowsOptions != nil})
		}
	}
}

func (c *checker) windowsOnly(p path) {
	c.absent(p, corev1.Windows, use{"hostUsers", c.spec.HostUsers != nil}, use{"hostPID", c.spec.HostPID}, use{"hostIPC", c.spec.HostIPC},
		use{"shareProcessNamespace", c.spec.ShareProcessNamespace != nil})
	if s := c.spec.SecurityContext; s != nil {
		c.absent(p.Child("securityContext"), corev1.Windows,
			use{"appArmorProfile", s.AppArmorProfile != nil}, use{"seLinuxOptions", s.SELinuxOptions != nil},
			use{"seccompProfile", s.SeccompProfile != nil}, use{"fsGroup", s.FSGroup != nil},
			use{"fsGroupChangePolicy", s.FSGroupChangePolicy != nil}, use{"sysctls", len(s.Sysctls) > 0},
			use{"runAsUser", s.RunAsUser != nil}, use{"runAsGroup", s.RunAsGroup != nil},
			use{"supplementalGroups", s.SupplementalGroups != nil},
			use{"supplementalGroupsPolicy", s.SupplementalGroupsPolicy != nil}, use{"seLinuxChangePolicy", s.SELinuxChangePolicy != nil})
	}
	for at, container := range c.each(p) {
		if s := container.SecurityContext; s != nil {
			c.absent(at.Child("securityContext"), corev1.Windows,
				use{"appArmorProfile", s.AppArmorProfile != nil}, use{"seLinuxOptions", s.SELinuxOptions != nil},
				use{"seccompProfile", s.SeccompProfile != nil}, use{"capabilities", s.Capabilities != nil},
				use{"readOnlyRootFilesystem", s.ReadOnlyRootFilesystem != nil}, use{"privileged", s.Privileged != nil},
				use{"allowPrivilegeEscalation", s.AllowPrivilegeEscalation != nil}, use{"procMount", s.ProcMount != nil},
				use{"runAsUser", s.RunAsUser != nil}, use{"runAsGroup", s.RunAsGroup != nil})
		}
	}
}

// use says whether a field is used.
type use struct {
	field string
	used  bool
}

func (e *problems) absent(p path, os corev1.OSName, uses ...use) {
	for _, u := range uses {
		if u.used {
			e.forbidden(p.Child(u.field), fmt.Sprintf("cannot be set when spec.os.name is %s", os))
		}
	}
}

// hostProcess checks that all containers or none run as processes of a Windows host.
func (c *checker) hostProcess(p path) {
	var options *corev1.WindowsSecurityContextOptions
	if s := c.spec.SecurityContext; s != nil {
		options = s.WindowsOptions
	}
	ofPod := isHostProcess(options)
	all, some := true, false
	for at, container := range c.each(p) {
		is := ofPod
		if s := container.SecurityContext; s != nil && isHostProcess(s.WindowsOptions) != nil {
			is = isHostProcess(s.WindowsOptions)
			if ofPod != nil && *is != *ofPod {
				c.invalid(at.Child("securityContext", "windowsOptions", "hostProcess"), *is, "must be what the pod's securityContext says")
			}
		}
		isHost := is != nil && *is
		all, some = all && isHost, some || isHost
	}
	if some && !all {
		c.invalid(p, "hostProcess", "must be true of all containers or of none")
	}
	if some && !c.spec.HostNetwork {
		c.invalid(p.Child("hostNetwork"), false, "must be true for containers that are processes of the host")
	}
}

// isHostProcess returns what is said of it, nil if nothing is.
func isHostProcess(o *corev1.WindowsSecurityContextOptions) *bool {
	if o == nil {
		return nil
	}
	return o.HostProcess
}

const (
	maxGMSASpec       = 64 << 10 // bytes
	maxWindowsUser    = 104
	maxWindowsDomain  = 255
	netBIOSDomain     = `^[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}$`
	dnsDomainLabel    = `[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?`
	notInWindowsUsers = `"/\:;|=,+*?<>@[]`
)

func (e *problems) windowsOptions(p path, o *corev1.WindowsSecurityContextOptions) {
	if o == nil {
		return
	}
	if o.GMSACredentialSpecName != nil {
		e.says(p.Child("gmsaCredentialSpecName"), *o.GMSACredentialSpecName, validation.IsDNS1123Subdomain(*o.GMSACredentialSpecName))
	}
	if o.GMSACredentialSpec != nil {
		at := p.Child("gmsaCredentialSpec")
		e.given(at, *o.GMSACredentialSpec, "give the specification, or leave it out")
		if len(*o.GMSACredentialSpec) > maxGMSASpec {
			e.list = append(e.list, field.TooLong(at, "", maxGMSASpec))
		}
	}
	if o.RunAsUserName != nil {
		if cure := windowsUser(*o.RunAsUserName); cure != "" {
			e.invalid(p.Child("runAsUserName"), *o.RunAsUserName, cure)
		}
	}
}

// windowsUser returns what is wrong with a user's name, with or without a domain.
func windowsUser(name string) (cure string) {
	domain, user, hasDomain := strings.Cut(name, `\`)
	if !hasDomain {
		domain, user = "", name
	}
	switch {
	case matches(`[[:cntrl:]]`, name):
		return "must have no control characters"
	case hasDomain && (len(domain) > maxWindowsDomain || !matches(netBIOSDomain, domain) && !matches(`^`+dnsDomainLabel+`(?:\.`+dnsDomainLabel+`)*$`, domain)):
		return "must have a domain of NetBIOS or DNS"
	case user == "" || len(user) > maxWindowsUser:
		return fmt.Sprintf("must have a user of 1 to %d characters", maxWindowsUser)
	case strings.Trim(user, ". ") == "":
		return "must have a user of more than periods and spaces"
	case strings.ContainsAny(user, notInWindowsUsers):
		return "must have none of " + notInWindowsUsers + " in the user"
	}
	return ""
}

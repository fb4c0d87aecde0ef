package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (e *problems) seccomp(p path, profile *corev1.SeccompProfile) {
	if profile == nil {
		return
	}
	oneOf(e, p.Child("type"), profile.Type,
		corev1.SeccompProfileTypeRuntimeDefault, corev1.SeccompProfileTypeLocalhost, corev1.SeccompProfileTypeUnconfined)
	at := p.Child("localhostProfile")
	switch {
	case profile.Type != corev1.SeccompProfileTypeLocalhost:
		if profile.LocalhostProfile != nil {
			e.invalid(at, *profile.LocalhostProfile, "can only be set when the type is Localhost")
		}
	case profile.LocalhostProfile == nil:
		e.required(at, "give the profile's file, or another type than Localhost")
	default:
		e.below(at, *profile.LocalhostProfile)
	}
}

// maxAppArmorProfile is PATH_MAX without the byte that ends it.
const maxAppArmorProfile = 4095

func (e *problems) appArmor(p path, profile *corev1.AppArmorProfile) {
	if profile == nil {
		return
	}
	oneOf(e, p.Child("type"), profile.Type,
		corev1.AppArmorProfileTypeRuntimeDefault, corev1.AppArmorProfileTypeLocalhost, corev1.AppArmorProfileTypeUnconfined)
	at := p.Child("localhostProfile")
	switch name := profile.LocalhostProfile; profile.Type {
	case corev1.AppArmorProfileTypeLocalhost:
		switch {
		case name == nil || *name == "":
			e.required(at, "give the profile's name, or another type than Localhost")
		case strings.TrimSpace(*name) != *name:
			e.invalid(at, *name, "must have no space around it")
		}
		if name != nil && len(*name) > maxAppArmorProfile {
			e.list = append(e.list, field.TooLong(at, "", maxAppArmorProfile))
		}
	case corev1.AppArmorProfileTypeRuntimeDefault, corev1.AppArmorProfileTypeUnconfined:
		if name != nil {
			e.invalid(at, *name, "can only be set when the type is Localhost")
		}
	}
}

// The annotations that say of seccomp and AppArmor what now has fields of its own must be well formed, and agree with them.

func (c *checker) seccompAnnotations(p path) {
	for _, key := range sorted(c.pod.Annotations) {
		if key != corev1.SeccompPodAnnotationKey && !strings.HasPrefix(key, corev1.SeccompContainerAnnotationKeyPrefix) {
			continue
		}
		switch profile := c.pod.Annotations[key]; profile {
		case corev1.SeccompProfileRuntimeDefault, corev1.DeprecatedSeccompProfileDockerDefault, corev1.SeccompProfileNameUnconfined:
		default:
			name, ok := strings.CutPrefix(profile, corev1.SeccompLocalhostProfileNamePrefix)
			if !ok {
				c.invalid(p.Key(key), profile, "must be \"runtime/default\", \"unconfined\" or \"localhost/\" and a file")
				continue
			}
			c.below(p.Key(key), name)
		}
	}
}

func (c *checker) appArmorAnnotations(p path) {
	for _, key := range sorted(c.pod.Annotations) {
		name, ok := strings.CutPrefix(key, corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix)
		if !ok {
			continue
		}
		found := false
		for _, container := range c.each(nil) {
			if found = container.Name == name; found {
				break
			}
		}
		if !found {
			c.invalid(p.Key(key), name, "must end with the name of a container of the pod")
		}
		switch profile := c.pod.Annotations[key]; {
		case profile == "", profile == corev1.DeprecatedAppArmorBetaProfileRuntimeDefault,
			profile == corev1.DeprecatedAppArmorBetaProfileNameUnconfined,
			strings.HasPrefix(profile, corev1.DeprecatedAppArmorBetaProfileNamePrefix):
		default:
			c.invalid(p.Key(key), profile, "must be \"runtime/default\", \"unconfined\" or \"localhost/\" and a profile")
		}
	}
}

func (e *problems) seccompAgrees(p path, profile *corev1.SeccompProfile, annotation string) {
	var name string
	local := false
	agrees := true
	switch profile.Type {
	case corev1.SeccompProfileTypeUnconfined:
		agrees = annotation == corev1.SeccompProfileNameUnconfined
	case corev1.SeccompProfileTypeRuntimeDefault:
		agrees = annotation == corev1.SeccompProfileRuntimeDefault || annotation == corev1.DeprecatedSeccompProfileDockerDefault
	case corev1.SeccompProfileTypeLocalhost:
		name, agrees = strings.CutPrefix(annotation, corev1.SeccompLocalhostProfileNamePrefix)
		local = agrees
	}
	e.agrees(p, agrees, local, name, profile.LocalhostProfile)
}

func (c *checker) appArmorAgrees(p path, container *corev1.Container) {
	annotation, ok := c.pod.Annotations[corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix+container.Name]
	profile := c.appArmorOf(container)
	if !ok || profile == nil || c.isWindows() {
		return
	}
	var name string
	local := false
	agrees := true
	switch profile.Type {
	case corev1.AppArmorProfileTypeUnconfined:
		agrees = annotation == corev1.DeprecatedAppArmorBetaProfileNameUnconfined
	case corev1.AppArmorProfileTypeRuntimeDefault:
		agrees = annotation == corev1.DeprecatedAppArmorBetaProfileRuntimeDefault
	case corev1.AppArmorProfileTypeLocalhost:
		name, agrees = strings.CutPrefix(annotation, corev1.DeprecatedAppArmorBetaProfileNamePrefix)
		local = agrees
	}
	c.agrees(p, agrees, local, name, profile.LocalhostProfile)
}

// appArmorOf is the container's own profile, or the pod's.
func (c *checker) appArmorOf(container *corev1.Container) *corev1.AppArmorProfile {
	if s := container.SecurityContext; s != nil && s.AppArmorProfile != nil {
		return s.AppArmorProfile
	}
	if c.spec.SecurityContext != nil {
		return c.spec.SecurityContext.AppArmorProfile
	}
	return nil
}

func (e *problems) agrees(p path, agrees, local bool, annotated string, profile *string) {
	if !agrees {
		e.forbidden(p.Child("type"), "must be what the annotation says, which is better removed")
	}
	if local && (profile == nil || *profile != annotated) {
		e.forbidden(p.Child("localhostProfile"), fmt.Sprintf("must be %q, as the annotation says, which is better removed", annotated))
	}
}

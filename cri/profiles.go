package cri

import (
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill"
)

// seccomp returns a container's profile; without one it is unconfined, as Kubernetes has it. A Localhost profile that is not a
// path below the root fails closed (CVE-2023-2431).
func (t *translation) seccomp(spec *podmill.ContainerSpec, p *corev1.SeccompProfile) (*runtimeapi.SecurityProfile, error) {
	const field = "securityContext.seccompProfile"
	switch {
	case p == nil, p.Type == corev1.SeccompProfileTypeUnconfined:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}, nil
	case p.Type == corev1.SeccompProfileTypeRuntimeDefault:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}, nil
	case p.Type != corev1.SeccompProfileTypeLocalhost:
		return nil, refuse(spec, field, "type "+string(p.Type)+" is not known")
	case p.LocalhostProfile == nil || !filepath.IsLocal(*p.LocalhostProfile) || filepath.Clean(*p.LocalhostProfile) == ".":
		return nil, refuse(spec, field, "localhostProfile has to be a path below "+t.seccompRoot)
	}
	return &runtimeapi.SecurityProfile{
		ProfileType: runtimeapi.SecurityProfile_Localhost, LocalhostRef: filepath.Join(t.seccompRoot, *p.LocalhostProfile),
	}, nil
}

// appArmor returns a container's profile, nil to leave it to the runtime.
func appArmor(spec *podmill.ContainerSpec, p *corev1.AppArmorProfile) (*runtimeapi.SecurityProfile, error) {
	const field = "securityContext.appArmorProfile"
	switch {
	case p == nil:
		return nil, nil //nolint:nilnil // nothing is asked
	case p.Type == corev1.AppArmorProfileTypeUnconfined:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}, nil
	case p.Type == corev1.AppArmorProfileTypeRuntimeDefault:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}, nil
	case p.Type != corev1.AppArmorProfileTypeLocalhost:
		return nil, refuse(spec, field, "type "+string(p.Type)+" is not known")
	case p.LocalhostProfile == nil || *p.LocalhostProfile == "":
		return nil, refuse(spec, field, "localhostProfile has to name a loaded profile")
	}
	return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Localhost, LocalhostRef: *p.LocalhostProfile}, nil
}

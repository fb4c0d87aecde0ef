package cri

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// What cannot be told is refused by name, and never left out. B094: a Localhost profile that is not below the root is never unconfined.
func TestRefusals(t *testing.T) {
	seccomp := func(p *string) func(*podmill.ContainerSpec) {
		return func(c *podmill.ContainerSpec) {
			c.Container.SecurityContext = &corev1.SecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: "Localhost", LocalhostProfile: p}}
		}
	}
	appArmor := func(p *corev1.AppArmorProfile) func(*podmill.ContainerSpec) {
		return func(c *podmill.ContainerSpec) {
			c.Container.SecurityContext = &corev1.SecurityContext{AppArmorProfile: p}
		}
	}
	const below = "securityContext.seccompProfile: localhostProfile has to be a path below /seccomp"
	for name, tc := range map[string]struct {
		change func(*podmill.ContainerSpec)
		want   string
	}{
		"seccomp nil":      {seccomp(nil), below},
		"seccomp empty":    {seccomp(ptr("")), below},
		"seccomp parent":   {seccomp(ptr("../x")), below},
		"seccomp deep":     {seccomp(ptr("a/../../x")), below},
		"seccomp absolute": {seccomp(ptr("/etc/passwd")), below},
		"seccomp root":     {seccomp(ptr(".")), below},
		"seccomp of the pod": {func(c *podmill.ContainerSpec) {
			c.Sandbox.Pod.Spec.SecurityContext = &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: "Localhost"}}
		}, below},
		"seccomp type": {func(c *podmill.ContainerSpec) {
			c.Container.SecurityContext = &corev1.SecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: "Other"}}
		}, "securityContext.seccompProfile: type Other is not known"},
		"AppArmor nil":       {appArmor(&corev1.AppArmorProfile{Type: "Localhost"}), "securityContext.appArmorProfile: localhostProfile has to name a loaded profile"},
		"AppArmor empty":     {appArmor(&corev1.AppArmorProfile{Type: "Localhost", LocalhostProfile: ptr("")}), "securityContext.appArmorProfile: localhostProfile has to name"},
		"AppArmor type":      {appArmor(&corev1.AppArmorProfile{}), "securityContext.appArmorProfile: type  is not known"},
		"block device":       {func(c *podmill.ContainerSpec) { c.Container.VolumeDevices = make([]corev1.VolumeDevice, 1) }, "volumeDevices: "},
		"claim":              {func(c *podmill.ContainerSpec) { c.Container.Resources.Claims = make([]corev1.ResourceClaim, 1) }, "resources.claims: "},
		"cgroup parent":      {func(c *podmill.ContainerSpec) { c.CgroupParent = "/other" }, "cgroup parent /other: "},
		"no label":           {func(c *podmill.ContainerSpec) { c.Labels = nil }, "labels: without io.kubernetes.pod.uid"},
		"user beyond 2^31":   {func(c *podmill.ContainerSpec) { c.User = &podmill.User{UID: ptr(int64(1) << 32)} }, "user: 4294967296 is no ID"},
		"negative group":     {func(c *podmill.ContainerSpec) { c.User = &podmill.User{UID: ptr(int64(1)), GID: ptr(int64(-1))} }, "user: -1 is no ID"},
		"group without user": {func(c *podmill.ContainerSpec) { c.User = &podmill.User{GID: ptr(int64(1))} }, "securityContext.runAsGroup: a group needs a user"},
		"mount of nothing":   {func(c *podmill.ContainerSpec) { c.Mounts = []podmill.Mount{{ContainerPath: "/m"}} }, "mount at /m: there is nothing to mount"},
		"propagation": {func(c *podmill.ContainerSpec) {
			c.Mounts = []podmill.Mount{{ContainerPath: "/m", HostPath: "/h", Propagation: "Sideways"}}
		}, "mount at /m: propagation Sideways is not known"},
		"signal": {func(c *podmill.ContainerSpec) {
			c.Container.Lifecycle = &corev1.Lifecycle{StopSignal: ptr(corev1.Signal("SIGNOW"))}
		}, "lifecycle.stopSignal: SIGNOW is not a signal"},
		"signal by CRI's name": {func(c *podmill.ContainerSpec) {
			c.Container.Lifecycle = &corev1.Lifecycle{StopSignal: ptr(corev1.Signal("RUNTIME_DEFAULT"))}
		}, "lifecycle.stopSignal: RUNTIME_DEFAULT is not a signal"},
		"no IDs": {func(c *podmill.ContainerSpec) { c.Sandbox.Pod.Spec.HostUsers = ptr(false) }, "hostUsers: "},
	} {
		t.Run(name, func(t *testing.T) {
			spec := containerSpec(sandboxSpec(testPod()), 0)
			tc.change(spec)
			config, err := translator(false).container(spec)
			var refused *podmill.ReasonError
			if !errors.As(err, &refused) || !strings.Contains(refused.Message, "pod shop/cart(7b4c): "+tc.want) || refused.Reason == "" {
				t.Errorf("error %v and\n%v\nwant the error %s", err, config, tc.want)
			}
		})
	}
}

func TestSandboxRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*podmill.SandboxSpec)
		want   string
	}{
		"no label": {func(s *podmill.SandboxSpec) { s.Labels = nil }, "labels: without io.kubernetes.pod.uid"},
		"no UID":   {func(s *podmill.SandboxSpec) { s.Pod.UID, s.Labels = "", nil }, "labels: without io.kubernetes.pod.uid"},
		"no IDs":   {func(s *podmill.SandboxSpec) { s.Pod.Spec.HostUsers = ptr(false) }, "hostUsers: "},
		"protocol": {func(s *podmill.SandboxSpec) {
			s.Pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 1, Protocol: "DCCP"}}
		}, "ports of container web: protocol DCCP"},
		"user": {func(s *podmill.SandboxSpec) {
			s.Pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr(int64(-5))}
		}, "securityContext: -5 is no ID"},
		"supplemental group": {func(s *podmill.SandboxSpec) {
			s.Pod.Spec.SecurityContext = &corev1.PodSecurityContext{SupplementalGroups: []int64{1, 1 << 32}}
		}, "securityContext: 4294967296 is no ID"},
		"groups policy": {func(s *podmill.SandboxSpec) {
			s.Pod.Spec.SecurityContext = &corev1.PodSecurityContext{SupplementalGroupsPolicy: ptr(corev1.SupplementalGroupsPolicy("Some"))}
		}, "securityContext.supplementalGroupsPolicy: Some is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := sandboxSpec(testPod())
			tc.change(spec)
			config, err := translator(false).sandbox(spec)
			var refused *podmill.ReasonError
			if !errors.As(err, &refused) || refused.Reason != "ConfigPodSandboxError" || !strings.Contains(refused.Message, ": "+tc.want) {
				t.Errorf("error %v and\n%v\nwant the error %s", err, config, tc.want)
			}
		})
	}
}

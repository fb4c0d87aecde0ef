package cri

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/yaml"

	"github.com/podmill/podmill/internal/lifecycle"
)

// FuzzTranslation holds that no pod is a panic, and that what keeps a container in is never lost on the way, whatever else the pod says.
func FuzzTranslation(f *testing.F) {
	paths, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		if data, err = yaml.YAMLToJSON(data); err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"metadata":{"uid":"1"},"spec":{"containers":[{"securityContext":{"seccompProfile":{"type":"Localhost","localhostProfile":"../../etc"}}}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var pod corev1.Pod
		if json.Unmarshal(data, &pod) != nil {
			return
		}
		spec := sandboxSpec(&pod)
		for _, tr := range []*translation{translator(false), translator(true)} {
			if config, err := tr.sandbox(spec); err == nil {
				if pod.Spec.HostNetwork && (config.GetHostname() != "" || len(config.GetPortMappings()) > 0) {
					t.Errorf("in the host's network: %v", config)
				}
			}
			n := 0
			for c := range lifecycle.Containers(&pod) {
				if config, err := tr.container(containerSpec(spec, n)); err == nil {
					checkConfined(t, &pod, c, config)
				}
				n++
			}
		}
	})
}

// checkConfined says of a container what a dumb reading of its spec would.
func checkConfined(t *testing.T, pod *corev1.Pod, c *corev1.Container, config *runtimeapi.ContainerConfig) {
	got, sc := config.GetLinux().GetSecurityContext(), c.SecurityContext
	var profile *corev1.SeccompProfile
	if pod.Spec.SecurityContext != nil {
		profile = pod.Spec.SecurityContext.SeccompProfile
	}
	if sc == nil {
		sc = &corev1.SecurityContext{}
	}
	if sc.SeccompProfile != nil {
		profile = sc.SeccompProfile
	}
	kind := got.GetSeccomp().GetProfileType()
	switch {
	case profile == nil || profile.Type == "Unconfined":
	case kind == runtimeapi.SecurityProfile_Unconfined:
		t.Errorf("seccomp %+v is unconfined", profile)
	case kind == runtimeapi.SecurityProfile_Localhost && !strings.HasPrefix(got.GetSeccomp().GetLocalhostRef(), "/seccomp/"):
		t.Errorf("seccomp %+v is %s", profile, got.GetSeccomp().GetLocalhostRef())
	}
	if (got.GetPrivileged() && !isTrue(sc.Privileged)) || (sc.AllowPrivilegeEscalation != nil && !*sc.AllowPrivilegeEscalation && !got.GetNoNewPrivs()) ||
		(isTrue(sc.ReadOnlyRootFilesystem) && !got.GetReadonlyRootfs()) {
		t.Errorf("%+v is told as %v", sc, got)
	}
	if len(got.GetMaskedPaths()) == 0 && (sc.ProcMount == nil || *sc.ProcMount != corev1.UnmaskedProcMount) {
		t.Errorf("%+v: nothing is masked", sc)
	}
	if r := config.GetLinux().GetResources(); r.GetCpuShares() < 2 || r.GetCpuShares() > 262144 || r.GetCpuQuota() < 0 || r.GetCpuQuota() > 0 && r.GetCpuQuota() < 1000 {
		t.Errorf("%+v is told as %v", c.Resources, r)
	}
}

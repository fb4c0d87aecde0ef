package cri

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/yaml"

	"github.com/podmill/podmill"
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

// FuzzListing holds the reader of listings to protobuf's own: whatever that reads, this one reads the same, into an empty snapshot and into one
// that holds it already.
func FuzzListing(f *testing.F) {
	sandboxes, containers := node(2)
	messages := wire(f, sandboxes, containers)
	f.Add(messages[0], messages[1])
	f.Add(messages[1], messages[0])
	f.Add(messages[0][:len(messages[0])-1], []byte{0x0a, 0x02, 0x42, 0x00})
	f.Add([]byte{0x0a, 0x04, 0x12, 0x02, 0x20, 0x07}, []byte{0x0b, 0x0c, 0x08, 0x01, 0x0d, 1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, s, c []byte) {
		snap := podmill.Snapshot{Items: []podmill.Item{{ID: "left over"}}}
		got := fill(&snap, [2][]byte{s, c})
		want, err := asProtobufHasIt([2][]byte{s, c})
		switch {
		case err != nil && got != nil:
			if len(snap.Items) != 1 {
				t.Errorf("what could not be read left %+v", snap.Items)
			}
			return
		case err != nil:
			return // a text that is not UTF-8: here it spoils no listing
		case got != nil:
			t.Fatalf("protobuf reads it: %v", got)
		}
		for range 2 {
			if diff := cmp.Diff(oneOfEach(want, snap.Items), snap.Items, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("(-want +got)\n%s", diff)
			}
			if err := fill(&snap, [2][]byte{s, c}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// oneOfEach takes of items that share an ID the one that is in got, for it may be any of them.
func oneOfEach(want, got []podmill.Item) (one []podmill.Item) {
	for _, item := range want {
		switch last := len(one) - 1; {
		case last < 0 || one[last].ID != item.ID:
			one = append(one, item)
		case slices.Contains(got, item):
			one[last] = item
		}
	}
	return one
}

package volume

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
)

func TestDesiredIsWhatContainersUse(t *testing.T) {
	pod := podmilltest.Pod("a",
		podmilltest.InitContainer("i", "i", podmilltest.VolumeMount("init", "/m")), volume("app", corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}),
		podmilltest.Volume("init", configMapSource("cm")), podmilltest.Volume("device", secretSource("s")), podmilltest.Volume("unused", configMapSource("gone")),
		podmilltest.Volume("debug", corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{}}),
		func(pod *corev1.Pod) {
			pod.Spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: "device"}}
			pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
				VolumeMounts: []corev1.VolumeMount{{Name: "debug"}},
			}}}
		})
	got := map[string]string{}
	refs := map[string][]podmill.ObjectRef{}
	o := newOptions(nil)
	for _, w := range desired(pod, o.builtins()) {
		got[w.Name] = ""
		if w.plugin != nil {
			got[w.Name] = w.plugin.Name()
		}
		refs[w.Name] = w.refs
	}
	want := map[string]string{"app": "kubernetes.io/host-path", "init": "kubernetes.io/configmap", "device": "kubernetes.io/secret", "debug": ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("desired (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string][]podmill.ObjectRef{
		"app": nil, "debug": nil, "init": {{Kind: "ConfigMap", Namespace: "default", Name: "cm"}}, "device": {{Kind: "Secret", Namespace: "default", Name: "s"}},
	}, refs); diff != "" {
		t.Errorf("made of (-want +got):\n%s", diff)
	}
}

func TestKindOf(t *testing.T) {
	for want, source := range map[string]any{
		"persistentVolumeClaim": corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}},
		"gitRepo":               corev1.VolumeSource{GitRepo: &corev1.GitRepoVolumeSource{}},
		"podCertificate":        &corev1.VolumeProjection{PodCertificate: &corev1.PodCertificateProjection{}},
		"unknown":               corev1.VolumeSource{},
	} {
		if got := kindOf(source); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// B002: what is removed of a pod that nobody knows.
func TestPlanRemoval(t *testing.T) {
	known := emptyDir{}
	owner := func(name string) Plugin {
		if name == known.Name() {
			return known
		}
		return nil
	}
	const ours, theirs = "volumes/kubernetes.io~empty-dir", "volumes/x~y"
	for _, tc := range []struct {
		name  string
		found []found
		do    []string // a star marks what is left to a plugin, a minus what is unmounted
		stays map[string]error
	}{
		{name: "nothing"},
		{
			"empty directories",
			[]found{{path: theirs + "/z"}, {path: theirs}, {path: "volumes"}, {path: "volume-subpaths/v/c/0"}, {path: "volume-subpaths/v/c"}},
			[]string{theirs + "/z", theirs, "volumes", "volume-subpaths/v/c/0", "volume-subpaths/v/c"}, nil,
		},
		{
			"a known volume, mounted or not", []found{{path: ours + "/a", mounted: true}, {path: ours + "/b"}, {path: ours}},
			[]string{"*" + ours + "/a", "*" + ours + "/b", ours}, nil,
		},
		{
			"a strange mount keeps all", []found{{path: ours + "/a"}, {path: ours}, {path: theirs + "/z", mounted: true}, {path: theirs}},
			nil, map[string]error{theirs + "/z": errStrangeMount},
		},
		{
			"a mounted subPath keeps all", []found{{path: ours + "/a"}, {path: "volume-subpaths/v/c/0", mounted: true}},
			nil, map[string]error{"volume-subpaths/v/c/0": errStrangeMount},
		},
		{
			"parts of known volumes go before all else",
			[]found{{path: ours + "/v"}, {path: ours}, {path: "volume-subpaths/v/c/0", mounted: true}, {path: "volume-subpaths/v/c/1", kind: aFile}, {path: "volume-subpaths/v/c"}},
			[]string{"*" + ours + "/v", ours, "-volume-subpaths/v/c/0", "-volume-subpaths/v/c/1", "volume-subpaths/v/c"}, nil,
		},
		{
			"what is mounted elsewhere is no part", []found{{path: ours + "/v"}, {path: "volume-subpaths/v/c", mounted: true}, {path: "volume-subpaths/v/c/x", mounted: true}},
			nil, map[string]error{"volume-subpaths/v/c": errStrangeMount, "volume-subpaths/v/c/x": errStrangeMount},
		},
		{
			"a link is no part", []found{{path: ours + "/v"}, {path: "volume-subpaths/v/c/0", kind: aLink}},
			[]string{"*" + ours + "/v", "volume-subpaths/v/c/0"}, nil,
		},
		{
			"a mounted subPath that is a file", []found{{path: "volume-subpaths/v/c/0", kind: aFile, mounted: true}},
			nil, map[string]error{"volume-subpaths/v/c/0": errStrangeMount},
		},
		{"a mount in a known plugin's place", []found{{path: ours, mounted: true}}, nil, map[string]error{ours: errStrangeMount}},
		{
			"a file stays alone", []found{{path: "volumes/file", kind: aFile}, {path: ours + "/a"}, {path: ours + "/f", kind: aFile}, {path: ours}},
			[]string{"*" + ours + "/a", ours}, map[string]error{"volumes/file": errStrangeFile, ours + "/f": errStrangeFile},
		},
		{
			"links are only links", []found{{path: ours + "/a", kind: aLink}, {path: "volumes/l", kind: aLink}, {path: "volume-subpaths", kind: aLink}},
			[]string{ours + "/a", "volumes/l", "volume-subpaths"}, nil,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			steps, stays := planRemoval(tc.found, owner)
			var do []string
			for _, s := range steps {
				switch {
				case s.plugin != nil:
					s.path = "*" + s.path
				case s.part:
					s.path = "-" + s.path
				}
				do = append(do, s.path)
			}
			if diff := cmp.Diff(tc.do, do); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			if len(stays) != len(tc.stays) {
				t.Errorf("stays %v, want %v", stays, tc.stays)
			}
			for _, p := range stays {
				if !errors.Is(p.err, tc.stays[p.path]) {
					t.Errorf("%s stays: %v, want %v", p.path, p.err, tc.stays[p.path])
				}
			}
		})
	}
}

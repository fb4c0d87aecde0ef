package volume

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podmill/podmill/internal/testenv"
	"github.com/podmill/podmill/podmilltest"
)

func ptr[T any](v T) *T { return &v }

func TestConfigMapAndSecret(t *testing.T) {
	r := newRig(t)
	r.objects.SetConfigMap(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "cm"},
		Data:       map[string]string{"text": "1"}, BinaryData: map[string][]byte{"binary": {0, 255}},
	})
	r.secret("s", map[string]string{"user": "me", "password": "xyz"})
	for _, tc := range []struct {
		source corev1.VolumeSource
		plugin string
		want   map[string]string
	}{
		{configMapSource("cm"), "kubernetes.io~configmap", map[string]string{"text": "1", "binary": "\x00\xff"}},
		{configMapSource("cm", corev1.KeyToPath{Key: "text", Path: "dir/a"}, corev1.KeyToPath{Key: "text", Path: "b"}), "kubernetes.io~configmap", map[string]string{"dir/a": "1", "b": "1"}},
		{secretSource("s"), "kubernetes.io~secret", map[string]string{"user": "me", "password": "xyz"}},
		{secretSource("s", corev1.KeyToPath{Key: "user", Path: "u"}), "kubernetes.io~secret", map[string]string{"u": "me"}},
	} {
		pod := podOf(tc.source)
		volumes, err := r.MountVolumes(t.Context(), pod)
		must(t, err)
		if v := volumes["v"]; v.HostPath != r.place(pod, tc.plugin, "v") || !v.ReadOnly || !v.SELinuxRelabel {
			t.Errorf("%+v", v)
		}
		holds(t, volumes["v"].HostPath, tc.want)
		if mayMount() && tc.source.Secret != nil && !strings.HasPrefix(fileSystem(t, volumes["v"].HostPath), "tmpfs") {
			t.Error("a secret is on disk")
		}
		r.unmount(pod)
		if left := r.list("pods"); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
}

func TestVolumeFollowsItsObject(t *testing.T) {
	r := newRig(t)
	r.configMap("cm", map[string]string{"a": "1"})
	pod := podOf(configMapSource("cm"))
	path := r.mount(pod)
	version, _ := os.Readlink(filepath.Join(path, "..data"))
	r.restart()
	r.mount(pod)
	if now, _ := os.Readlink(filepath.Join(path, "..data")); now != version {
		t.Error("the same content was written again")
	}
	r.configMap("cm", map[string]string{"a": "2", "b": "2"})
	r.mount(pod)
	holds(t, path, map[string]string{"a": "2", "b": "2"})
}

// A pod outlives the ConfigMap that it was started with: its syncs do not fail, and its volume stays as it is.
func TestReadyVolumeStaysReady(t *testing.T) {
	r := newRig(t)
	r.configMap("cm", map[string]string{"a": "1"})
	pod := podOf(configMapSource("cm"))
	path := r.mount(pod)
	r.objects.Fail(fmt.Errorf("no answer"))
	if again := r.mount(pod); again != path {
		t.Errorf("at %s, want %s", again, path)
	}
	holds(t, path, map[string]string{"a": "1"})
	want := `Warning FailedMount default/a: MountVolume.SetUp failed for volume "v" : configmap "cm": ConfigMap default/cm: no answer` + "\n"
	if diff := cmp.Diff(want, r.events.String()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// B076: an optional object that is missing gives an empty volume, which is filled when the object appears.
func TestOptional(t *testing.T) {
	optional := ptr(true)
	items := []corev1.KeyToPath{{Key: "a", Path: "a"}, {Key: "b", Path: "b"}}
	for name, source := range map[string]corev1.VolumeSource{
		"configMap": {ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: named("o"), Items: items, Optional: optional}},
		"secret":    {Secret: &corev1.SecretVolumeSource{SecretName: "o", Items: items, Optional: optional}},
		"projected": {Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: named("o"), Items: items, Optional: optional}},
			{Secret: &corev1.SecretProjection{LocalObjectReference: named("o"), Items: items, Optional: optional}},
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			pod := podOf(source)
			path := r.mount(pod)
			holds(t, path, map[string]string{})
			r.configMap("o", map[string]string{"a": "1"}) // and b is still missing
			r.secret("o", map[string]string{"a": "1"})
			r.mount(pod)
			holds(t, path, map[string]string{"a": "1"})
		})
	}
}

func TestModes(t *testing.T) {
	r := newRig(t)
	r.configMap("cm", map[string]string{"a": "", "b": ""})
	source := configMapSource("cm", corev1.KeyToPath{Key: "a", Path: "a"}, corev1.KeyToPath{Key: "b", Path: "b", Mode: ptr[int32](0o400)})
	source.ConfigMap.DefaultMode = ptr[int32](0o755)
	path := r.mount(podOf(source))
	for name, want := range map[string]fs.FileMode{"a": 0o755, "b": 0o400, "..data": 0o755 | fs.ModeDir, ".": 0o755 | fs.ModeDir} {
		if info, err := os.Stat(filepath.Join(path, name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, want)
		}
	}
}

// B089: who may read a token, and who everything else.
func TestTokenBelongsToThePod(t *testing.T) {
	testenv.Root(t)
	runAs := func(uid int64) podmilltest.PodOption {
		return func(pod *corev1.Pod) {
			for i := range pod.Spec.Containers {
				pod.Spec.Containers[i].SecurityContext = &corev1.SecurityContext{RunAsUser: &uid}
			}
		}
	}
	source := corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: ptr[int32](0o644), Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
		{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: named("cm")}},
	}}}
	for _, tc := range []struct {
		name        string
		pod         *corev1.Pod
		token, file string
	}{
		{"one user", podOf(source, runAs(1000)), "1000:0 600", "0:0 644"},
		{"a group", podOf(source, fsGroupOf(2000)), "0:2000 640", "0:2000 644"},
		{"neither", podOf(source), "0:0 644", "0:0 644"},
		{"several users", podOf(source, runAs(1000), podmilltest.Container("d", "i", func(c *corev1.Container) {
			c.SecurityContext = &corev1.SecurityContext{RunAsUser: ptr[int64](1001)}
		})), "0:0 644", "0:0 644"},
		{"both", podOf(source, runAs(1000), fsGroupOf(2000)), "1000:2000 640", "0:2000 644"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, WithServiceAccountTokens(&issuer{}))
			r.configMap("cm", map[string]string{"key": "value"})
			path := r.mount(tc.pod)
			holds(t, path, map[string]string{"token": "of default/a", "key": "value"})
			if got := owner(t, filepath.Join(path, "token")); got != tc.token {
				t.Errorf("token %s, want %s", got, tc.token)
			}
			if got := owner(t, filepath.Join(path, "key")); got != tc.file {
				t.Errorf("other file %s, want %s", got, tc.file)
			}
		})
	}
}

// B095: the later source wins, and people are told, once.
func TestLaterSourceWins(t *testing.T) {
	r := newRig(t, WithServiceAccountTokens(&issuer{}))
	r.secret("s1", map[string]string{"k": "1", "token": "no token"})
	r.secret("s2", map[string]string{"k": "2"})
	pod := podOf(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{Secret: &corev1.SecretProjection{LocalObjectReference: named("s1")}},
		{Secret: &corev1.SecretProjection{LocalObjectReference: named("s2")}},
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
	}}})
	path := r.mount(pod)
	r.mount(pod)
	holds(t, path, map[string]string{"k": "2", "token": "of default/a"})
	want := `Warning ProjectedVolumeOverlap default/a: volume "v": source 1 replaces what an earlier source has at path "k"
Warning ProjectedVolumeOverlap default/a: volume "v": source 2 replaces what an earlier source has at path "token"
`
	if diff := cmp.Diff(want, r.events.String()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestDownwardAPI(t *testing.T) {
	node := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("4Gi")}
	r := newRig(t, WithAllocatable(func() corev1.ResourceList { return node }))
	items := []corev1.DownwardAPIVolumeFile{}
	for path, field := range map[string]string{
		"name": "metadata.name", "namespace": "metadata.namespace", "labels": "metadata.labels", "annotations": "metadata.annotations",
		"one/label": "metadata.labels['b']", "one/annotation": "metadata.annotations['x']",
	} {
		items = append(items, corev1.DownwardAPIVolumeFile{Path: path, FieldRef: &corev1.ObjectFieldSelector{FieldPath: field}})
	}
	items = append(items, corev1.DownwardAPIVolumeFile{
		Path: "memory", Mode: ptr[int32](0o400), ResourceFieldRef: &corev1.ResourceFieldSelector{ContainerName: "uses-v", Resource: "limits.memory", Divisor: resource.MustParse("1Mi")},
	})
	want := map[string]string{
		"name": "a", "namespace": "default", "labels": "a=\"1\"\nb=\"say \\\"2\\\"\\n\"", "annotations": "x=\"y\"",
		"one/label": "say \"2\"\n", "one/annotation": "y", "memory": "4096",
	}
	labels := []podmilltest.PodOption{podmilltest.Label("b", "say \"2\"\n"), podmilltest.Label("a", "1"), podmilltest.Annotation("x", "y")}
	for _, source := range []corev1.VolumeSource{
		{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: items}},
		{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{DownwardAPI: &corev1.DownwardAPIProjection{Items: items}}}}},
	} {
		pod := podOf(source, labels...)
		path := r.mount(pod)
		holds(t, path, want)
		if info, _ := os.Stat(filepath.Join(path, "memory")); info.Mode() != 0o400 {
			t.Errorf("mode %v", info.Mode())
		}
		r.mount(podmilltest.Edit(pod, podmilltest.Label("b", "3")))
		if data, _ := os.ReadFile(filepath.Join(path, "one/label")); string(data) != "3" {
			t.Errorf("the label is %q after it changed to 3", data)
		}
		r.unmount(pod)
	}
}

func TestRefused(t *testing.T) {
	project := func(p corev1.VolumeProjection) corev1.VolumeSource {
		return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{p}}}
	}
	for want, source := range map[string]corev1.VolumeSource{
		"persistentVolumeClaim volumes are not supported":                    {PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}},
		"csi volumes are not supported":                                      {CSI: &corev1.CSIVolumeSource{}},
		"gitRepo volumes are not supported":                                  {GitRepo: &corev1.GitRepoVolumeSource{}}, // CVE-2024-10220
		"serviceAccountToken sources of projected volumes are not supported": project(corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}}),
		"clusterTrustBundle sources of projected volumes are not supported":  project(corev1.VolumeProjection{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{}}),
		"podCertificate sources of projected volumes are not supported":      project(corev1.VolumeProjection{PodCertificate: &corev1.PodCertificateProjection{}}),
	} {
		r := newRig(t)
		r.configMap("cm", nil)
		pod := podOf(source, volume("good", configMapSource("cm")))
		want = "unmounted volumes=[v]: MountVolume.SetUp failed for volume \"v\" : " + want
		if got := r.refused(pod); !strings.HasSuffix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
		// What could be made is there, and goes with the rest.
		if left := r.list("pods"); len(left) == 0 {
			t.Error("the good volume was not made")
		}
		r.unmount(pod)
	}
	r := newRig(t, WithObjects(nil, nil))
	for want, source := range map[string]corev1.VolumeSource{
		"there is no source of ConfigMaps": configMapSource("cm"),
		"there is no source of Secrets":    secretSource("s"),
	} {
		if got := r.refused(podOf(source)); !strings.HasSuffix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

package agent

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/cri"
	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/podspec"
)

// saying is a runtime that says what CRI serves.
type saying struct{ podmill.Runtime }

func (saying) Features() podmill.Features { return cri.Features() }

func composed(t *testing.T, opts ...Option) *Agent {
	t.Helper()
	a, err := New(saying{podmilltest.NewRuntime()}, t.TempDir(), nil, append(opts, WithObjects(podmilltest.NewObjects()))...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Of every field of a PodSpec of this version of the API somebody says how it is served. What serves a field says so of the field itself, so
// that one which a later version puts beside it is not served by accident; and nobody says anything of a field that does not exist.
func TestEveryFieldIsServedOrRefused(t *testing.T) {
	features, fields := composed(t).Features(), podspec.Fields()
	for _, field := range fields {
		if _, ok := features.Of(field); !ok {
			t.Errorf("nobody says how %s is served: have a block serve it or refuse it", field)
		}
	}
	for key := range features {
		field, _, _ := strings.Cut(key, "=")
		exists := slices.ContainsFunc(fields, func(f string) bool { return f == field || strings.HasPrefix(f, field+".") })
		if !exists {
			t.Errorf("there is no field %s", field)
		}
	}
}

func TestRefused(t *testing.T) {
	quantities := corev1.ResourceList{"cpu": resource.MustParse("1"), "example.com/gpu": resource.MustParse("1")}
	for name, tc := range map[string]struct {
		change func(*corev1.PodSpec, *corev1.Container)
		want   string // no field if empty
	}{
		"nothing": {func(*corev1.PodSpec, *corev1.Container) {}, ""},
		"a volume of another machine": {func(s *corev1.PodSpec, _ *corev1.Container) {
			s.Volumes = []corev1.Volume{{Name: "a", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}, {Name: "b", VolumeSource: corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{}}}}
		}, "spec.volumes[1].nfs: Forbidden: no plugin makes such volumes here"},
		"a claim": {func(s *corev1.PodSpec, _ *corev1.Container) { s.ResourceClaims = make([]corev1.PodResourceClaim, 1) },
			"spec.resourceClaims: Forbidden: devices cannot be claimed yet"},
		"a device": {func(_ *corev1.PodSpec, c *corev1.Container) { c.Resources.Limits = quantities },
			`spec.containers[0].resources.limits: Unsupported value: "example.com/gpu": nothing hands out devices here`},
		"huge pages as a medium": {func(s *corev1.PodSpec, _ *corev1.Container) {
			s.Volumes = []corev1.Volume{{Name: "a", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: "HugePages-2Mi"}}}}
		}, ""},
		"Windows": {func(s *corev1.PodSpec, _ *corev1.Container) { s.OS = &corev1.PodOS{Name: corev1.Windows} }, `spec.os.name: Unsupported value: "windows"`},
		"Linux":   {func(s *corev1.PodSpec, _ *corev1.Container) { s.OS = &corev1.PodOS{Name: corev1.Linux} }, ""},
		"an init container's": {func(s *corev1.PodSpec, c *corev1.Container) {
			s.InitContainers = []corev1.Container{*c}
			s.InitContainers[0].Resources.Limits = quantities
		}, "spec.initContainers[0].resources.limits: Unsupported value: "},
		"a runtime class": {func(s *corev1.PodSpec, _ *corev1.Container) { s.RuntimeClassName = new("kata") }, "spec.runtimeClassName: Forbidden: this agent knows no runtime classes"},
		"a token": {func(s *corev1.PodSpec, _ *corev1.Container) {
			s.Volumes = []corev1.Volume{{Name: "a", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}}}}}}}
		}, "spec.volumes[0].projected.sources[0].serviceAccountToken: Forbidden: nothing provides it here"},
		"the scheduler's": {func(s *corev1.PodSpec, _ *corev1.Container) {
			s.NodeSelector, s.Affinity = map[string]string{"a": "b"}, &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "web:1"))
			tc.change(&pod.Spec, &pod.Spec.Containers[0])
			got := ""
			if errs := composed(t).Refused(pod); len(errs) > 0 {
				got = errs.ToAggregate().Error()
			}
			if tc.want == "" && got != "" || !strings.HasPrefix(got, tc.want) {
				t.Errorf("refused: %q, want %q", got, tc.want)
			}
		})
	}
}

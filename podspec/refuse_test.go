package podspec_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podspec"
)

// Of what nobody says anything, a field of a pod is refused by its path; so the same function tells which fields a pod has.
func TestCheckerOfNothing(t *testing.T) {
	no := false
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		HostUsers:      &no,
		InitContainers: []corev1.Container{{}, {Name: "a", Env: []corev1.EnvVar{{Name: "b"}}}},
		EphemeralContainers: []corev1.EphemeralContainer{{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Args: []string{"x", "y"}}, TargetContainerName: "a",
		}},
		Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}},
	}}
	var got []string
	for _, err := range podspec.NewChecker(nil).Refused(pod) {
		got = append(got, err.Field)
	}
	want := []string{
		"spec.volumes[0].hostPath.path", "spec.initContainers[1].name", "spec.initContainers[1].env[0].name",
		"spec.ephemeralContainers[0].args", "spec.ephemeralContainers[0].targetContainerName", "spec.hostUsers",
	}
	if len(got) != len(want) {
		t.Fatalf("got %q", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%d is %s, want %s", i, got[i], want[i])
		}
	}
}

// An entry without a reason refuses all the same.
func TestCheckerOfARefusalWithoutAReason(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n", Volumes: []corev1.Volume{{Name: "v"}}}}
	features := podmill.Features{"volumes": {Refused: true}, "nodeName=n*": {Refused: true}, "nodeName": {}}
	if errs := podspec.NewChecker(features).Refused(pod); len(errs) != 2 {
		t.Errorf("refused: %v", errs)
	}
}

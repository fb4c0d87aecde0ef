package references_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/references"
)

func TestOf(t *testing.T) {
	const spec = `
imagePullSecrets: [{name: pull}]
volumes:
- {name: a, configMap: {name: volume}}
- {name: b, secret: {secretName: volume}}
- {name: c, projected: {sources: [{configMap: {name: projected}}, {secret: {name: projected}}, {downwardAPI: {}}]}}
- {name: d, emptyDir: {}}
- {name: e, persistentVolumeClaim: {claimName: volume}}
- {name: f, ephemeral: {}}
initContainers: [{name: i, envFrom: [{configMapRef: {name: init}}]}]
containers:
- name: c
  envFrom: [{secretRef: {name: from}}]
  env: [{name: A, value: b}, {name: B, valueFrom: {configMapKeyRef: {name: key, key: k}}}, {name: C, valueFrom: {secretKeyRef: {name: key, key: k}}}]
ephemeralContainers: [{name: e, envFrom: [{secretRef: {name: ephemeral}}]}]
`
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = "ns", "pod"
	if err := yaml.UnmarshalStrict([]byte(spec), &pod.Spec); err != nil {
		t.Fatal(err)
	}
	want := map[podmill.ObjectRef]bool{}
	for kind, names := range map[string][]string{
		"ConfigMap": {"volume", "projected", "init", "key"}, "Secret": {"pull", "volume", "projected", "from", "key", "ephemeral"},
		"PersistentVolumeClaim": {"volume", "pod-f"},
	} {
		for _, name := range names {
			want[podmill.ObjectRef{Kind: kind, Namespace: "ns", Name: name}] = true
		}
	}
	got := map[podmill.ObjectRef]bool{}
	for _, ref := range references.Of(pod) {
		got[ref] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}
}

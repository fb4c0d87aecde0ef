package podspecdiff

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/core"
	v1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"sigs.k8s.io/yaml"

	"github.com/podmill/podmill/podspec"
)

func sameComplaints(t *testing.T, theirs, ours field.ErrorList, valid bool) {
	t.Helper()
	f := newForm()
	if !slices.Equal(f.paths(theirs), f.paths(ours)) || valid != (len(ours) == 0) {
		t.Errorf("valid: want %v\nkubernetes: %v\npodspec: %v", valid, theirs, ours)
	}
}

// TestConfigMaps compares what is said of ConfigMaps.
func TestConfigMaps(t *testing.T) {
	for _, c := range []struct {
		valid bool
		text  string
	}{
		{true, "{metadata: {name: a, namespace: default}, data: {a.b_c-d: x}, binaryData: {e: eA==}}"},
		{true, "{metadata: {name: a, namespace: default}}"},
		{false, "{metadata: {name: A, namespace: default}}"},
		{false, "{metadata: {name: a}}"},
		{false, "{metadata: {name: a, namespace: default}, data: {a/b: x, ..: x}, binaryData: {'': eA==}}"},
		{false, "{metadata: {name: a, namespace: default}, data: {a: x}, binaryData: {a: eA==}}"},
		{false, "{metadata: {name: a, namespace: default}, data: {a: " + strings.Repeat("x", corev1.MaxSecretSize+1) + "}}"},
	} {
		m := &corev1.ConfigMap{}
		if err := yaml.UnmarshalStrict([]byte(c.text), m); err != nil {
			t.Fatal(err)
		}
		inner := &core.ConfigMap{}
		if err := v1.Convert_v1_ConfigMap_To_core_ConfigMap(m.DeepCopy(), inner, nil); err != nil {
			t.Fatal(err)
		}
		sameComplaints(t, validation.ValidateConfigMap(inner), podspec.ValidateConfigMap(m), c.valid)
	}
}

// TestSecrets compares defaults of Secrets, and what is said of them.
func TestSecrets(t *testing.T) {
	for _, c := range []struct {
		valid bool
		text  string
	}{
		{true, "data: {a: eA==}, stringData: {a: other, b: more}"},
		{true, "type: example.com/own, data: {a: eA==}"},
		{false, "data: {a/b: eA==}"},
		{false, "stringData: {a: " + strings.Repeat("x", corev1.MaxSecretSize+1) + "}"},
		{true, "type: kubernetes.io/dockerconfigjson, stringData: {.dockerconfigjson: '{}'}"},
		{false, "type: kubernetes.io/dockerconfigjson, stringData: {.dockerconfigjson: '[]'}"},
		{false, "type: kubernetes.io/dockerconfigjson"},
		{true, "type: kubernetes.io/dockercfg, stringData: {.dockercfg: '{}'}"},
		{false, "type: kubernetes.io/dockercfg, stringData: {.dockercfg: x}"},
		{true, "type: kubernetes.io/basic-auth, stringData: {username: ''}"},
		{false, "type: kubernetes.io/basic-auth"},
		{false, "type: kubernetes.io/ssh-auth, stringData: {ssh-privatekey: ''}"},
		{true, "type: kubernetes.io/ssh-auth, stringData: {ssh-privatekey: x}"},
		{false, "type: kubernetes.io/tls, stringData: {tls.crt: x}"},
		{true, "type: kubernetes.io/tls, stringData: {tls.crt: x, tls.key: x}"},
		{false, "type: kubernetes.io/service-account-token"},
	} {
		s := &corev1.Secret{}
		if err := yaml.UnmarshalStrict([]byte("{metadata: {name: a, namespace: default}, "+c.text+"}"), s); err != nil {
			t.Fatal(err)
		}
		real := s.DeepCopy()
		v1.SetObjectDefaults_Secret(real)
		inner := &core.Secret{}
		if err := v1.Convert_v1_Secret_To_core_Secret(real, inner, nil); err != nil {
			t.Fatal(err)
		}
		podspec.DefaultSecret(s)
		if string(inner.Type) != string(s.Type) || !equality.Semantic.DeepEqual(inner.Data, s.Data) {
			t.Errorf("defaults differ: %v, %v", inner, s)
		}
		sameComplaints(t, validation.ValidateSecret(inner), podspec.ValidateSecret(s), c.valid)
	}
}

package podspec

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateConfigMap says what is wrong with a ConfigMap that is to be created.
func ValidateConfigMap(m *corev1.ConfigMap) field.ErrorList {
	e := &problems{}
	e.object(field.NewPath("metadata"), &m.ObjectMeta)
	size := 0
	text, binary := field.NewPath("data"), field.NewPath("binaryData")
	for _, key := range sorted(m.Data) {
		e.says(text.Key(key), key, validation.IsConfigMapKey(key))
		if _, ok := m.BinaryData[key]; ok {
			e.invalid(text.Key(key), key, "is in binaryData too: only one can be")
		}
		size += len(m.Data[key])
	}
	for _, key := range sorted(m.BinaryData) {
		e.says(binary.Key(key), key, validation.IsConfigMapKey(key))
		size += len(m.BinaryData[key])
	}
	e.size(text, size)
	return e.list
}

// ValidateRuntimeClass says what is wrong with a RuntimeClass that is to be created.
func ValidateRuntimeClass(c *nodev1.RuntimeClass) field.ErrorList {
	e := &problems{}
	e.subdomain(field.NewPath("metadata", "name"), c.Name)
	if at := field.NewPath("handler"); e.given(at, c.Handler, "name one of the runtime's handlers") {
		e.says(at, c.Handler, validation.IsDNS1123Label(c.Handler))
	}
	return e.list
}

// DefaultSecret fills in what a Secret leaves out, in place, as an API server does when it is created. What is in stringData goes to data.
func DefaultSecret(s *corev1.Secret) {
	or(&s.Type, corev1.SecretTypeOpaque)
	if len(s.StringData) > 0 && s.Data == nil {
		s.Data = map[string][]byte{}
	}
	for key, value := range s.StringData {
		s.Data[key] = []byte(value)
	}
	s.StringData = nil
}

// ValidateSecret says what is wrong with a Secret that is to be created, with its defaults filled in. No value is in what it says.
func ValidateSecret(s *corev1.Secret) field.ErrorList {
	e := &problems{}
	e.object(field.NewPath("metadata"), &s.ObjectMeta)
	size := 0
	data := field.NewPath("data")
	for _, key := range sorted(s.Data) {
		e.says(data.Key(key), key, validation.IsConfigMapKey(key))
		size += len(s.Data[key])
	}
	e.size(data, size)
	needs := func(keys ...string) {
		for _, key := range keys {
			if _, ok := s.Data[key]; !ok {
				e.required(data.Key(key), fmt.Sprintf("is needed for the type %s", s.Type))
			}
		}
	}
	switch s.Type {
	case corev1.SecretTypeServiceAccountToken:
		e.given(field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey), s.Annotations[corev1.ServiceAccountNameKey], "say of which service account")
	case corev1.SecretTypeDockercfg:
		e.dockerConfig(data, s, corev1.DockerConfigKey)
	case corev1.SecretTypeDockerConfigJson:
		e.dockerConfig(data, s, corev1.DockerConfigJsonKey)
	case corev1.SecretTypeBasicAuth:
		_, hasName := s.Data[corev1.BasicAuthUsernameKey]
		_, hasPassword := s.Data[corev1.BasicAuthPasswordKey]
		if !hasName && !hasPassword {
			needs(corev1.BasicAuthUsernameKey, corev1.BasicAuthPasswordKey)
		}
	case corev1.SecretTypeSSHAuth:
		e.given(data.Key(corev1.SSHAuthPrivateKey), string(s.Data[corev1.SSHAuthPrivateKey]), fmt.Sprintf("is needed for the type %s", s.Type))
	case corev1.SecretTypeTLS:
		needs(corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	}
	return e.list
}

// dockerConfig checks credentials of registries. The error of the parser would tell parts of them.
func (e *problems) dockerConfig(data path, s *corev1.Secret, key string) {
	config, ok := s.Data[key]
	if !ok {
		e.required(data.Key(key), fmt.Sprintf("is needed for the type %s", s.Type))
	} else if json.Unmarshal(config, &map[string]any{}) != nil {
		e.invalid(data.Key(key), "<not shown>", "must be a JSON object")
	}
}

func (e *problems) size(p path, size int) {
	if size > corev1.MaxSecretSize {
		e.list = append(e.list, field.TooLong(p, "", corev1.MaxSecretSize))
	}
}

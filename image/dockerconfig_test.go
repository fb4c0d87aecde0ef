package image

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podmill/podmill"
)

func jsonSecret(name, content string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(content)},
	}
}

func cfgSecret(name, content string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Type: corev1.SecretTypeDockercfg,
		Data: map[string][]byte{corev1.DockerConfigKey: []byte(content)},
	}
}

// TestPullSecretForms shows the forms that a pull secret may have.
func TestPullSecretForms(t *testing.T) {
	one := []podmill.ImageAuth{{Username: "u", Password: "p:1", ServerAddress: "reg.example"}}
	auth := base64.StdEncoding.EncodeToString([]byte("u:p:1"))
	for name, tc := range map[string]struct {
		secret *corev1.Secret
		want   []podmill.ImageAuth
	}{
		"user and password": {jsonSecret("s", `{"auths":{"reg.example":{"username":"u","password":"p:1","email":"e"}}}`), one},
		"auth":              {jsonSecret("s", `{"auths":{"reg.example":{"auth":"`+auth+`"}}}`), one},
		"auth wins":         {jsonSecret("s", `{"auths":{"reg.example":{"username":"x","password":"y","auth":"`+auth+`"}}}`), one},
		"auth, not padded":  {jsonSecret("s", `{"auths":{"reg.example":{"auth":"`+strings.TrimRight(auth, "=")+`"}}}`), one},
		"auth with spaces":  {jsonSecret("s", `{"auths":{"reg.example":{"auth":" `+auth+`\n"}}}`), one},
		"old form":          {cfgSecret("s", `{"reg.example":{"auth":"`+auth+`"}}`), one},
		"in order": {jsonSecret("s", `{"auths":{"b":{"username":"2"},"a":{"username":"1"}}}`),
			[]podmill.ImageAuth{{Username: "1", ServerAddress: "a"}, {Username: "2", ServerAddress: "b"}}},
		"credential helper": {jsonSecret("s", `{"auths":{"reg.example":{}},"credsStore":"desktop"}`), nil},
		"nothing":           {jsonSecret("s", `{}`), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := authsOf(tc.secret)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestMalformedSecrets shows what is said of a secret that cannot be used: what is wrong, and nothing of what is in it.
func TestMalformedSecrets(t *testing.T) {
	for name, tc := range map[string]struct {
		secret *corev1.Secret
		want   string
	}{
		"other type":     {&corev1.Secret{Type: corev1.SecretTypeOpaque}, `its type "Opaque" is not one of pull secrets`},
		"no key":         {&corev1.Secret{Type: corev1.SecretTypeDockerConfigJson}, "it has no .dockerconfigjson"},
		"other's key":    {&corev1.Secret{Type: corev1.SecretTypeDockercfg, Data: jsonSecret("s", "{}").Data}, "it has no .dockercfg"},
		"empty":          {jsonSecret("s", ""), ".dockerconfigjson is malformed"},
		"not JSON":       {jsonSecret("s", "canary"), ".dockerconfigjson is malformed"},
		"old, not JSON":  {cfgSecret("s", `{"canary`), ".dockercfg is malformed"},
		"wrong kind":     {jsonSecret("s", `{"auths":{"reg":{"password":7}}}`), ".dockerconfigjson is malformed"},
		"not base64":     {jsonSecret("s", `{"auths":{"reg":{"auth":"canary!"}}}`), ".dockerconfigjson is malformed: an auth is not base64"},
		"without colon":  {cfgSecret("s", `{"reg":{"auth":"Y2FuYXJ5"}}`), ".dockercfg is malformed: an auth is not base64 of username:password"},
		"wrong nesting":  {jsonSecret("s", `{"auths":["canary"]}`), ".dockerconfigjson is malformed"},
		"a number too":   {jsonSecret("s", `{"auths":{"reg":123456}}`), ".dockerconfigjson is malformed"},
		"trailing bytes": {jsonSecret("s", `{"auths":{}} canary`), ".dockerconfigjson is malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			auths, err := authsOf(tc.secret)
			if err == nil || err.Error() != tc.want || auths != nil {
				t.Errorf("got %v, %v; want %s", auths, err, tc.want)
			}
		})
	}
}

func FuzzDockerConfig(f *testing.F) {
	f.Add([]byte(`{"auths":{"reg.example":{"auth":"dTpw"},"*.x":{"username":"u","password":"p"}}}`))
	f.Add([]byte(`{"reg.example":{"auth":"dTpw"}}`))
	f.Add([]byte(`{"auths":{"a":{"auth":"%%%"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, secret := range []*corev1.Secret{jsonSecret("s", string(data)), cfgSecret("s", string(data))} {
			auths, err := authsOf(secret)
			if err != nil {
				var bad *malformedError
				if auths != nil || !errors.As(err, &bad) {
					t.Errorf("got %v, %v", auths, err)
				}
				continue
			}
			for _, auth := range auths {
				if printed := fmt.Sprintf("%v %+v %#v", auth, &auth, []podmill.ImageAuth{auth}); len(auth.Password) > 20 && strings.Contains(printed, auth.Password) {
					t.Errorf("printed as %s", printed)
				}
			}
			for _, auth := range match(auths, "reg.example/a/b") {
				if auth.ServerAddress != "" {
					t.Errorf("for %q alone", auth.ServerAddress)
				}
			}
			if _, err := json.Marshal(auths); err != nil {
				t.Error(err)
			}
		}
	})
}

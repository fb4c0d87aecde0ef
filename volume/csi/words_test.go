package csi

import (
	"encoding/base64"
	"strings"
	"testing"
	"unicode/utf8"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// A driver that quotes what it was given in confidence is told of without it, in errors and events alike (CVE-2024-3744).
func TestADriverThatTellsSecrets(t *testing.T) {
	const password, token = "correct horse", "a for vault"
	for _, inSecrets := range []bool{false, true} {
		r := joined(t, nil, storagev1.CSIDriverSpec{
			AttachRequired: ptr.To(false), TokenRequests: []storagev1.TokenRequest{{Audience: "vault"}}, ServiceAccountTokenInSecrets: &inSecrets,
		}, WithServiceAccountTokens(&tokens{}))
		r.objects.SetSecret(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"}, Data: map[string][]byte{"password": []byte(password + "\n"), "user": []byte("root")}})
		ref := &corev1.SecretReference{Namespace: "default", Name: "s"}
		r.bind(func(pv *corev1.PersistentVolume) {
			pv.Spec.CSI.NodeStageSecretRef, pv.Spec.CSI.NodePublishSecretRef = ref, ref
		})
		for call, quoted := range map[string]string{
			"NodeStageVolume":   "fail Internal mount -o username=root,password=" + password + " failed: exit status 32",
			"NodePublishVolume": "fail Internal username=root,password=" + password + " token=" + token + " failed: exit status 32",
		} {
			r.driver.Fault(call, quoted)
			pod := persistent("a")
			said := r.notReady(pod) + r.events.String()
			r.driver.Fault("", "")
			r.unmount(pod)
			if strings.Contains(said, password) || strings.Contains(said, token) || strings.Contains(said, "username=root") {
				t.Errorf("%s told %s", call, said)
			}
			if want := call + " of CSI driver csi.test: rpc error: code = Internal desc = "; !strings.Contains(said, want) || !strings.Contains(said, "username=***,password=***") || !strings.Contains(said, "exit status 32") {
				t.Errorf("%s told %s, of which too little is left", call, said)
			}
		}
	}
}

// What is hidden, and what is not.
func TestGuardedWords(t *testing.T) {
	request := &csipb.NodePublishVolumeRequest{
		Secrets:       map[string]string{"password": "swordfish", "longer": "swordfish42", "lines": "first\nsecond\n", "flag": "no", "empty": "", "space": "    "},
		VolumeContext: map[string]string{"pool": "fast pool", tokensKey: `{"a":{"token":"eyJhbGci"}}`},
	}
	for words, want := range map[string]string{
		"password=swordfish":                 "password=***",
		"swordfish42swordfish":               "******",
		`"first\nsecond"`:                    `"***"`,
		"no such pool: fast pool":            "no such pool: fast pool",
		`{"a":{"token":"eyJhbGci"}} expired`: `{"a":{"token":"***"}} expired`,
		"a    b":                             "a    b",
		"not \xff text":                      "not ? text",
		strings.Repeat("ä", maxWords):        strings.Repeat("ä", maxWords/2) + "...",
		"x" + strings.Repeat("ä", maxWords):  "x" + strings.Repeat("ä", maxWords/2-1) + "...",
	} {
		if got := guarded(words, request); got != want || !utf8.ValidString(got) {
			t.Errorf("%.80q is told as %.80q, want %.80q", words, got, want)
		}
	}
	if got := guarded("plain", &csipb.NodeUnpublishVolumeRequest{}); got != "plain" {
		t.Errorf("%q", got)
	}
}

// No secret gets through, wherever it stands.
func FuzzGuardedWords(f *testing.F) {
	f.Add("before ", "secret", " after")
	f.Add("secret", "secretsecret", "\xffsecret")
	f.Fuzz(func(t *testing.T, before, secret, after string) {
		secret = base64.StdEncoding.EncodeToString([]byte(secret))
		if len(secret) < minSecret || strings.Contains(hidden, secret) {
			t.Skip()
		}
		got := guarded(before+secret+after, &csipb.NodeStageVolumeRequest{Secrets: map[string]string{"key": secret}})
		if strings.Contains(got, secret) || !utf8.ValidString(got) || len(got) > maxWords+len("...") {
			t.Errorf("%q", got)
		}
	})
}

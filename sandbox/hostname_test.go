package sandbox

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
)

func newPod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name + "-uid")}}
}

// TestHostname shows where a host name comes from and how it is cut.
func TestHostname(t *testing.T) {
	a := func(n int) string { return strings.Repeat("a", n) }
	for name, tc := range map[string]struct {
		name string
		spec corev1.PodSpec
		want string
		err  string
	}{
		"name":                    {name: "web", want: "web"},
		"field":                   {name: "web", spec: corev1.PodSpec{Hostname: "db"}, want: "db"},
		"dots are kept":           {name: "web.v1", want: "web.v1"},
		"host network":            {name: "web", spec: corev1.PodSpec{HostNetwork: true}, want: ""},
		"63":                      {name: a(63), want: a(63)},                                           // B109
		"63 and -x":               {name: a(63) + "-x", want: a(63)},                                    // B109
		"the 63rd is a dot":       {name: a(62) + ".b", want: a(62)},                                    // B109
		"several are cut":         {name: a(60) + "-.-bcd", want: a(60)},                                // B109
		"field of 64":             {name: "web", spec: corev1.PodSpec{Hostname: a(64)}, want: a(63)},    // B109
		"nothing is left":         {name: strings.Repeat("-.", 40), err: `metadata.name: nothing of "`}, // B109
		"no name":                 {err: "metadata.name: nothing of"},
		"field with dot":          {name: "web", spec: corev1.PodSpec{Hostname: "a.b"}, err: `spec.hostname: "a.b"`},
		"subdomain alone":         {name: "web", spec: corev1.PodSpec{Subdomain: "s"}, want: "web"},
		"FQDN":                    {name: "web", spec: corev1.PodSpec{Subdomain: "s", SetHostnameAsFQDN: new(true)}, want: "web.s.default.svc.cluster.local"},
		"FQDN without subdomain":  {name: "web", spec: corev1.PodSpec{SetHostnameAsFQDN: new(true)}, want: "web"},
		"FQDN of 64":              {name: a(36), spec: corev1.PodSpec{Subdomain: "s", SetHostnameAsFQDN: new(true)}, want: a(36) + ".s.default.svc.cluster.local"},
		"FQDN of 65":              {name: a(37), spec: corev1.PodSpec{Subdomain: "s", SetHostnameAsFQDN: new(true)}, err: "has 65 characters, at most 64"},
		"FQDN with bad subdomain": {name: "web", spec: corev1.PodSpec{Subdomain: "S", SetHostnameAsFQDN: new(true)}, err: `spec.subdomain: "S"`},
		"override":                {name: "web", spec: corev1.PodSpec{Hostname: "db", HostnameOverride: new("web.example.com")}, want: "web.example.com"},
		"empty override":          {name: "web", spec: corev1.PodSpec{HostnameOverride: new("")}, want: "web"},
		"override of 64":          {name: "web", spec: corev1.PodSpec{HostnameOverride: new(a(64))}, want: a(64)},
		"override of 65":          {name: "web", spec: corev1.PodSpec{HostnameOverride: new(a(65))}, err: "spec.hostnameOverride"},
		"bad override":            {name: "web", spec: corev1.PodSpec{HostnameOverride: new("A")}, err: `spec.hostnameOverride: "A"`},
	} {
		t.Run(name, func(t *testing.T) {
			pod := newPod(tc.name)
			pod.Spec = tc.spec
			got, err := hostname(pod, "cluster.local")
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("got %q, %v; want an error with %q", got, err, tc.err)
				}
				return
			}
			if err != nil || got != tc.want {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

// TestFQDNWithoutClusterDomain shows that a node without a cluster makes no name that ends in a dot.
func TestFQDNWithoutClusterDomain(t *testing.T) {
	pod := newPod("web")
	pod.Spec.Subdomain, pod.Spec.SetHostnameAsFQDN = "s", new(true)
	if got, err := hostname(pod, ""); got != "web.s.default.svc" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestCutHostname shows that whatever a valid pod name is cut to, a runtime takes it (B109).
func TestCutHostname(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?){0,5}`).Draw(t, "name")
		got := cutHostname(name)
		if msgs := validation.IsDNS1123Subdomain(got); len(msgs) > 0 || len(got) > maxHostname || !strings.HasPrefix(name, got) {
			t.Fatalf("%q became %q: %v", name, got, msgs)
		}
		if len(name) <= maxHostname && got != name {
			t.Fatalf("%q fits and became %q", name, got)
		}
	})
}

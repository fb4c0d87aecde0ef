package httpget

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var web = &corev1.Container{Name: "web", Ports: []corev1.ContainerPort{
	{Name: "http", ContainerPort: 8080, HostPort: 80}, {Name: "81", ContainerPort: 8081},
}}

func TestRequestURL(t *testing.T) {
	number, name := intstr.FromInt32, intstr.FromString
	for want, tc := range map[string]struct {
		podIP  string
		action corev1.HTTPGetAction
	}{
		"http://10.0.0.1:80":               {"10.0.0.1", corev1.HTTPGetAction{Port: number(80)}},
		"http://10.0.0.1:80/":              {"10.0.0.1", corev1.HTTPGetAction{Port: number(80), Path: "/"}},
		"https://10.0.0.1:8443/":           {"10.0.0.1", corev1.HTTPGetAction{Port: number(8443), Path: "/", Scheme: corev1.URISchemeHTTPS}},
		"http://[fd00::1]:80/":             {"fd00::1", corev1.HTTPGetAction{Port: number(80), Path: "/"}},
		"http://example.com:80/x":          {"10.0.0.1", corev1.HTTPGetAction{Port: number(80), Path: "/x", Host: "example.com"}},
		"http://example.com:81/x":          {"", corev1.HTTPGetAction{Port: number(81), Path: "/x", Host: "example.com"}},
		"http://10.0.0.1:8080/x?a=b&c=%20": {"10.0.0.1", corev1.HTTPGetAction{Port: name("http"), Path: "/x?a=b&c=%20"}},
		"http://10.0.0.1:8080/a%2Fb#part":  {"10.0.0.1", corev1.HTTPGetAction{Port: name("http"), Path: "/a%2Fb#part"}},
		"http://10.0.0.1:8081/x":           {"10.0.0.1", corev1.HTTPGetAction{Port: name("81"), Path: "x"}}, // a name before a number
		"http://10.0.0.1:82/%25zz%3Fa=b":   {"10.0.0.1", corev1.HTTPGetAction{Port: name("82"), Path: "/%zz?a=b"}},
		// A path never leads to another host.
		"http://10.0.0.1:83/x": {"10.0.0.1", corev1.HTTPGetAction{Port: number(83), Path: "ftp://evil.example/x"}},
		"http://10.0.0.1:84/y": {"10.0.0.1", corev1.HTTPGetAction{Port: number(84), Path: "//evil.example/y"}},
	} {
		req, err := Request(t.Context(), &tc.action, web, tc.podIP, ForProbe)
		if err != nil {
			t.Errorf("%s: %v", want, err)
			continue
		}
		if got := req.URL.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestRequestRefuses(t *testing.T) {
	for want, tc := range map[string]struct {
		podIP string
		port  intstr.IntOrString
	}{
		`container "web" has no port "0"`:           {"10.0.0.1", intstr.FromInt32(0)},
		`container "web" has no port "65536"`:       {"10.0.0.1", intstr.FromInt32(65536)},
		`container "web" has no port "-1"`:          {"10.0.0.1", intstr.FromString("-1")},
		`container "web" has no port "metrics"`:     {"10.0.0.1", intstr.FromString("metrics")},
		`container "web" has no port ""`:            {"10.0.0.1", intstr.FromString("")},
		`the pod of container "web" has no address`: {"", intstr.FromInt32(80)},
	} {
		_, err := Request(t.Context(), &corev1.HTTPGetAction{Port: tc.port}, web, tc.podIP, ForProbe)
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// B080: the first Host counts, in any spelling; defaults fill in for what is absent; an empty value removes.
func TestRequestHeaders(t *testing.T) {
	type h = map[string][]string
	const agent = "kube-probe/1.37"
	for name, tc := range map[string]struct {
		said []corev1.HTTPHeader
		host string
		want h
	}{
		"none":            {nil, "", h{"User-Agent": {agent}, "Accept": {"*/*"}}},
		"two hosts":       {[]corev1.HTTPHeader{{Name: "host", Value: "a.example"}, {Name: "Host", Value: "b.example"}}, "a.example", h{"Host": {"a.example", "b.example"}, "User-Agent": {agent}, "Accept": {"*/*"}}},
		"empty agent":     {[]corev1.HTTPHeader{{Name: "User-Agent"}}, "", h{"User-Agent": {""}, "Accept": {"*/*"}}},
		"empty accept":    {[]corev1.HTTPHeader{{Name: "Accept"}}, "", h{"User-Agent": {agent}}},
		"own accept":      {[]corev1.HTTPHeader{{Name: "accept", Value: "x"}}, "", h{"User-Agent": {agent}, "Accept": {"x"}}},
		"own agent":       {[]corev1.HTTPHeader{{Name: "USER-AGENT", Value: "me"}}, "", h{"User-Agent": {"me"}, "Accept": {"*/*"}}},
		"one name, twice": {[]corev1.HTTPHeader{{Name: "x-a", Value: "1"}, {Name: "X-A", Value: "2"}}, "", h{"X-A": {"1", "2"}, "User-Agent": {agent}, "Accept": {"*/*"}}},
	} {
		req, err := Request(t.Context(), &corev1.HTTPGetAction{Port: intstr.FromInt32(80), HTTPHeaders: tc.said}, web, "10.0.0.1", ForProbe)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, h(req.Header)); diff != "" || req.Host != tc.host {
			t.Errorf("%s: host %q, %s", name, req.Host, diff)
		}
	}
	if got := UserAgent(ForHook); got != "kube-lifecycle/1.37" {
		t.Error(got)
	}
}

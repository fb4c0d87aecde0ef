package sandbox

import (
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/podmill/podmill"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden is what testdata/spec/*.golden holds: the spec without its pod, and what people are told of it.
type golden struct {
	Spec     *podmill.SandboxSpec
	Warnings []string `json:",omitempty"`
}

// TestSpecGolden shows what a spec is made of, field by field, on a node with a cluster's DNS.
func TestSpecGolden(t *testing.T) {
	host, err := readResolvConf("testdata/resolv.conf")
	if err != nil {
		t.Fatal(err)
	}
	opts := newOptions([]Option{
		WithClusterDNS(netip.MustParseAddr("10.96.0.10"), netip.MustParseAddr("fd00::10")),
		WithClusterDomain("cluster.local"),
		WithRuntimeClasses(func(class string) (string, error) {
			if class != "gvisor" {
				return "", podmill.ErrNotFound
			}
			return "runsc", nil
		}),
	})
	files, err := filepath.Glob("testdata/spec/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no pods: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			pod := readPod(t, file)
			spec, err := specOf(pod, 3, &opts, host)
			if err != nil {
				t.Fatal(err)
			}
			_, warnings, err := podDNS(pod, opts.dns, host)
			if err != nil {
				t.Fatal(err)
			}
			out := golden{Spec: spec}
			spec.Pod = nil
			for _, w := range warnings {
				out.Warnings = append(out.Warnings, w.reason+": "+w.message)
			}
			compareGolden(t, strings.TrimSuffix(file, ".yaml")+".golden", out)
		})
	}
}

func readPod(t *testing.T, file string) *corev1.Pod {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict(data, pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

func compareGolden(t *testing.T, file string, value any) {
	t.Helper()
	got, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// TestSpecIsItsOwn shows that a spec shares no map and no list with the pod or the host, so that whoever completes it changes nothing else.
func TestSpecIsItsOwn(t *testing.T) {
	pod := newPod("web")
	pod.Labels, pod.Annotations = map[string]string{"a": "1"}, map[string]string{"b": "2"}
	pod.Spec.DNSPolicy = corev1.DNSDefault
	pod.Spec.DNSConfig = &corev1.PodDNSConfig{Options: []corev1.PodDNSConfigOption{{Name: "timeout", Value: new("9")}}}
	host := &podmill.DNS{Servers: make([]string, 1, 8), Searches: []string{"x"}, Options: []string{"timeout:1"}}
	before := pod.DeepCopy()
	spec, err := specOf(pod, 0, &options{}, host)
	if err != nil {
		t.Fatal(err)
	}
	spec.Labels["a"], spec.Annotations["b"], spec.DNS.Servers[0], spec.DNS.Searches[0] = "x", "x", "x", "x"
	if diff := cmp.Diff(before, pod); diff != "" {
		t.Errorf("the pod changed (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(&podmill.DNS{Servers: []string{""}, Searches: []string{"x"}, Options: []string{"timeout:1"}}, host); diff != "" {
		t.Errorf("the host's configuration changed (-before +after):\n%s", diff)
	}
}

// TestSpecRefused shows that a pod that cannot have a sandbox is refused with the name of the field.
func TestSpecRefused(t *testing.T) {
	classes := func(class string) (string, error) {
		if class == "broken" {
			return "", errors.New("connection refused")
		}
		return "", fmt.Errorf("runtimeclass %s: %w", class, podmill.ErrNotFound)
	}
	for name, tc := range map[string]struct {
		change   func(*corev1.Pod)
		handlers func(string) (string, error)
		want     string
	}{
		// B119
		"too long for a log directory": {change: func(p *corev1.Pod) { p.Namespace, p.Name = strings.Repeat("n", 20), strings.Repeat("p", 230) },
			want: "too long for the name of a log directory: 288 characters, at most 255"},
		"classes are not known": {change: func(p *corev1.Pod) { p.Spec.RuntimeClassName = new("kata") },
			want: `spec.runtimeClassName: "kata": this agent knows no runtime classes`},
		"unknown class": {change: func(p *corev1.Pod) { p.Spec.RuntimeClassName = new("kata") }, handlers: classes,
			want: `spec.runtimeClassName: RuntimeClass "kata" not found`},
		"a class that cannot be told": {change: func(p *corev1.Pod) { p.Spec.RuntimeClassName = new("broken") }, handlers: classes,
			want: `spec.runtimeClassName: look up RuntimeClass "broken": connection refused`},
		"unknown policy": {change: func(p *corev1.Pod) { p.Spec.DNSPolicy = "Clusterfirst" },
			want: `spec.dnsPolicy: there is no policy "Clusterfirst"`},
		"host name": {change: func(p *corev1.Pod) { p.Spec.Hostname = "a_b" }, want: `spec.hostname: "a_b"`},
	} {
		t.Run(name, func(t *testing.T) {
			pod := newPod("web")
			pod.UID = "01234567-89ab-cdef-0123-456789abcdef"
			tc.change(pod)
			_, err := specOf(pod, 0, &options{handlers: tc.handlers}, &podmill.DNS{})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

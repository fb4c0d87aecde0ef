package sandbox

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/podmill/podmill"
)

func inCluster() clusterDNS {
	return clusterDNS{servers: []netip.Addr{netip.MustParseAddr("10.96.0.10")}, domain: "cluster.local"}
}

func clusterSearches() []string {
	return []string{"default.svc.cluster.local", "svc.cluster.local", "cluster.local"}
}

func domains(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("d%02d.example", i))
	}
	return out
}

// TestSearchDomains shows that the cluster's domains come first, that none is there twice, and where the list is cut (B098).
func TestSearchDomains(t *testing.T) {
	long := strings.Repeat("x", 254)
	wide := func(n int) (out []string) { // of 128 characters each
		for i := range n {
			out = append(out, fmt.Sprintf("%0128d", i))
		}
		return out
	}
	for name, tc := range map[string]struct {
		host []string
		own  []string
		want []string
		cut  bool
	}{
		"the host has the cluster's": {host: append(clusterSearches(), "a", "b"), want: append(clusterSearches(), "a", "b")},
		"7 are kept":                 {host: domains(4), want: append(clusterSearches(), domains(4)...)},
		"32 are kept":                {host: domains(29), want: append(clusterSearches(), domains(29)...)},
		"33 are cut":                 {host: domains(30), want: append(clusterSearches(), domains(29)...), cut: true},
		"own ones come last":         {host: []string{"a"}, own: []string{"b", "a"}, want: append(clusterSearches(), "a", "b")},
		"2048 characters":            {host: wide(17), want: append(clusterSearches(), wide(15)...), cut: true},
		"one is too long":            {host: []string{"a", long, "b"}, want: append(clusterSearches(), "a", "b"), cut: true},
	} {
		t.Run(name, func(t *testing.T) {
			pod := newPod("web")
			pod.Spec.DNSConfig = &corev1.PodDNSConfig{Searches: tc.own}
			dns, warnings, err := podDNS(pod, inCluster(), &podmill.DNS{Searches: tc.host})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, dns.Searches); diff != "" {
				t.Errorf("searches (-want +got):\n%s", diff)
			}
			wantWarning(t, warnings, tc.cut, "Search Line limits were exceeded, some search paths have been omitted, the applied search line is: "+
				strings.Join(tc.want, " "))
		})
	}
}

func wantWarning(t *testing.T, got []warning, want bool, message string) {
	t.Helper()
	var all []warning
	if want {
		all = []warning{{dnsConfigForming, message}}
	}
	if diff := cmp.Diff(all, got, cmp.AllowUnexported(warning{})); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// TestNameServers shows that the host's servers are cut to three, and do not count where the cluster's are asked (B098).
func TestNameServers(t *testing.T) {
	host := &podmill.DNS{Servers: []string{"1.0.0.1", "1.0.0.2", "1.0.0.3", "1.0.0.4"}}
	pod := newPod("web")
	dns, warnings, err := podDNS(pod, inCluster(), host)
	if err != nil || !cmp.Equal(dns.Servers, []string{"10.96.0.10"}) {
		t.Errorf("ClusterFirst: %v, %v", dns, err)
	}
	wantWarning(t, warnings, false, "")

	pod.Spec.DNSPolicy = corev1.DNSDefault
	dns, warnings, err = podDNS(pod, inCluster(), host)
	if err != nil || !cmp.Equal(dns.Servers, host.Servers[:3]) {
		t.Errorf("Default: %v, %v", dns, err)
	}
	wantWarning(t, warnings, true,
		"Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: 1.0.0.1 1.0.0.2 1.0.0.3")
}

// TestClusterFirstOptions shows that five dots are the default of ClusterFirst, and that a pod's own option wins by its name (B113).
func TestClusterFirstOptions(t *testing.T) {
	host := &podmill.DNS{Options: []string{"timeout:1"}}
	pod := newPod("web")
	dns, _, _ := podDNS(pod, inCluster(), host)
	if diff := cmp.Diff([]string{"ndots:5"}, dns.Options); diff != "" {
		t.Errorf("no own options (-want +got):\n%s", diff)
	}
	pod.Spec.DNSConfig = &corev1.PodDNSConfig{Options: []corev1.PodDNSConfigOption{
		{Name: "ndots", Value: new("2")}, {Name: "edns0"}, {Name: "use-vc", Value: new("")},
	}}
	dns, _, _ = podDNS(pod, inCluster(), host)
	if diff := cmp.Diff([]string{"ndots:2", "edns0", "use-vc"}, dns.Options); diff != "" {
		t.Errorf("own options (-want +got):\n%s", diff)
	}
}

// TestWithoutClusterDNS shows that ClusterFirst is Default where there is no cluster's DNS, and that it is said.
func TestWithoutClusterDNS(t *testing.T) {
	host := &podmill.DNS{Servers: []string{"192.0.2.1"}, Searches: []string{"a"}, Options: []string{"rotate"}}
	dns, warnings, err := podDNS(newPod("web"), clusterDNS{domain: "cluster.local"}, host)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(host, dns); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want := []warning{{"MissingClusterDNS", `pod: "web_default(web-uid)". kubelet does not have ClusterDNS IP configured and cannot create Pod ` +
		`using "ClusterFirst" policy. Falling back to "Default" policy.`}}
	if diff := cmp.Diff(want, warnings, cmp.AllowUnexported(warning{})); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// TestParseResolvConf shows how a resolv.conf is read (B113).
func TestParseResolvConf(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want podmill.DNS
	}{
		"empty":                  {},
		"two lines of options":   {"options timeout:1\noptions attempts:3\n", podmill.DNS{Options: []string{"timeout:1", "attempts:3"}}},
		"an option twice":        {"options ndots:1 rotate\noptions ndots:2", podmill.DNS{Options: []string{"ndots:2", "rotate"}}},
		"the root":               {"search .\n", podmill.DNS{Searches: []string{"."}}},
		"final dot":              {"search a.example. b\n", podmill.DNS{Searches: []string{"a.example", "b"}}},
		"the last search":        {"search a\nsearch b\n", podmill.DNS{Searches: []string{"b"}}},
		"an empty search":        {"search a\nsearch\n", podmill.DNS{}},
		"comments":               {"#nameserver 1.1.1.1\n# search a\n; options b\n  # c\nnameserver 2.2.2.2 # d\n", podmill.DNS{Servers: []string{"2.2.2.2"}}},
		"tabs and line ends":     {"\tnameserver\t1.1.1.1\r\nsearch\ta\r\n", podmill.DNS{Servers: []string{"1.1.1.1"}, Searches: []string{"a"}}},
		"name server without":    {"nameserver\nnameserver 1.1.1.1", podmill.DNS{Servers: []string{"1.1.1.1"}}},
		"what it does not know":  {"sortlist 1.2.3.4\nfoo bar\nnameserver 1.1.1.1", podmill.DNS{Servers: []string{"1.1.1.1"}}},
		"case is not overlooked": {"Nameserver 1.1.1.1", podmill.DNS{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(&tc.want, parseResolvConf(tc.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestReadResolvConf shows that a file that cannot be read, or is not what it should be, is named.
func TestReadResolvConf(t *testing.T) {
	huge := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(huge, make([]byte, maxResolvConf+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{huge, huge + ".missing"} {
		if _, err := readResolvConf(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

// TestDNSFits shows that whatever the host and the pod ask for, a resolver takes the outcome, and that what is cut is said.
func TestDNSFits(t *testing.T) {
	words := func(label string, max int) *rapid.Generator[[]string] {
		return rapid.SliceOfN(rapid.StringMatching(`[a-d.]{1,8}|x{250,256}`), 0, max)
	}
	rapid.Check(t, func(t *rapid.T) {
		host := &podmill.DNS{Servers: words("servers", 6).Draw(t, "servers"), Searches: words("searches", 40).Draw(t, "searches")}
		pod := newPod("web")
		pod.Spec.DNSPolicy = rapid.SampledFrom([]corev1.DNSPolicy{corev1.DNSClusterFirst, corev1.DNSDefault, corev1.DNSNone}).Draw(t, "policy")
		pod.Spec.DNSConfig = &corev1.PodDNSConfig{Searches: words("own", 40).Draw(t, "own"), Nameservers: words("own servers", 5).Draw(t, "own servers")}
		dns, warnings, err := podDNS(pod, inCluster(), host)
		if err != nil {
			t.Fatal(err)
		}
		if len(dns.Servers) > 3 || len(dns.Searches) > 32 || len(strings.Join(dns.Searches, " ")) > 2048 {
			t.Fatalf("does not fit: %v", dns)
		}
		if len(unique(dns.Searches)) != len(dns.Searches) || len(unique(dns.Servers)) != len(dns.Servers) {
			t.Fatalf("repeats: %v", dns)
		}
		cut := 0
		for _, own := range pod.Spec.DNSConfig.Searches {
			if !strings.Contains(" "+strings.Join(dns.Searches, " ")+" ", " "+own+" ") {
				cut = 1
			}
		}
		if len(warnings) < cut {
			t.Fatal("a domain was cut and nothing said")
		}
	})
}

func FuzzResolvConf(f *testing.F) {
	example, err := os.ReadFile("testdata/resolv.conf")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(example))
	f.Add("search .\noptions a:b:c :\nnameserver \x00")
	f.Fuzz(func(t *testing.T, text string) {
		dns := parseResolvConf(text)
		var out strings.Builder
		for _, s := range dns.Servers {
			fmt.Fprintln(&out, "nameserver", s)
		}
		fmt.Fprintln(&out, "search", strings.Join(dns.Searches, " "))
		fmt.Fprintln(&out, "options", strings.Join(dns.Options, " "))
		again := parseResolvConf(out.String())
		for i, d := range dns.Searches {
			dns.Searches[i] = withoutDot(d) // one dot goes at a time: "a.." is no domain
		}
		if diff := cmp.Diff(dns, again); diff != "" {
			t.Errorf("what was read is read differently (-first +again):\n%s", diff)
		}
	})
}

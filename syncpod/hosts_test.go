package syncpod

import (
	"strings"
	"testing"
)

// A pod with a subdomain is known by its whole name, whether or not that is its host name.
func TestHostsOfASubdomain(t *testing.T) {
	for _, tc := range []struct{ hostname, domain, want string }{
		{"cart", "", "10.0.0.7\tcart\n"},
		{"cart", "db.shop.svc.cluster.local", "10.0.0.7\tcart.db.shop.svc.cluster.local\tcart\n"},
		{"cart.db.shop.svc.cluster.local", "db.shop.svc.cluster.local", "10.0.0.7\tcart.db.shop.svc.cluster.local\tcart\n"},
	} {
		if got := podHosts(tc.hostname, tc.domain, []string{"10.0.0.7"}); !strings.HasSuffix(got, "ip6-allrouters\n"+tc.want) {
			t.Errorf("host name %s in %q:\n%s", tc.hostname, tc.domain, got)
		}
	}
}

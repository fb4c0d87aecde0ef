package image

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/podmill/podmill"
)

// TestMatch shows which credentials are for a repository, and in which order they are tried.
func TestMatch(t *testing.T) {
	for name, tc := range map[string]struct {
		places     []string
		repository string
		want       []string
	}{
		"host":                        {[]string{"reg.example", "other.example"}, "reg.example/app", []string{"reg.example"}},
		"scheme and slash":            {[]string{"https://reg.example/", "http://reg.example"}, "reg.example/app", []string{"https://reg.example/", "http://reg.example"}},
		"API's path":                  {[]string{"https://reg.example/v2/", "reg.example/v1/"}, "reg.example/app", []string{"https://reg.example/v2/", "reg.example/v1/"}},
		"longest path first":          {[]string{"reg.example", "reg.example/a/b", "reg.example/a"}, "reg.example/a/b/c", []string{"reg.example/a/b", "reg.example/a", "reg.example"}},
		"path of another":             {[]string{"reg.example/b"}, "reg.example/a/b", nil},
		"path is a beginning":         {[]string{"reg.example/team-"}, "reg.example/team-a/app", []string{"reg.example/team-"}},
		"API's path and a path":       {[]string{"https://reg.example/v2/a"}, "reg.example/a/b", []string{"https://reg.example/v2/a"}},
		"port":                        {[]string{"reg.example", "reg.example:5000", "reg.example:5001"}, "reg.example:5000/app", []string{"reg.example:5000"}},
		"port asked for":              {[]string{"reg.example:5000"}, "reg.example/app", nil},
		"IPv6":                        {[]string{"[::1]:5000"}, "[::1]:5000/app", []string{"[::1]:5000"}},
		"wildcard":                    {[]string{"*.example"}, "reg.example/app", []string{"*.example"}},
		"a wildcard is one label":     {[]string{"*.example", "*.*.example"}, "a.b.example/app", []string{"*.*.example"}},
		"pattern in a label":          {[]string{"eu-?.example", "us-*.example"}, "us-west.example/app", []string{"us-*.example"}},
		"wildcard, port and path":     {[]string{"*.example:5000/a"}, "reg.example:5000/a/b", []string{"*.example:5000/a"}},
		"exact before wildcard":       {[]string{"*.example/a", "reg.example"}, "reg.example/a", []string{"reg.example", "*.example/a"}},
		"bad pattern":                 {[]string{"[.example", "reg.example"}, "reg.example/app", []string{"reg.example"}},
		"hub":                         {[]string{"docker.io"}, "docker.io/library/app", []string{"docker.io"}},
		"hub's old name":              {[]string{"https://index.docker.io/v1/"}, "docker.io/library/app", []string{"https://index.docker.io/v1/"}},
		"hub's old name, short":       {[]string{"index.docker.io"}, "docker.io/team/app", []string{"index.docker.io"}},
		"the old name comes last":     {[]string{"index.docker.io/v1/", "docker.io/team"}, "docker.io/team/app", []string{"docker.io/team"}},
		"hub's are for nobody else":   {[]string{"https://index.docker.io/v1/", "docker.io"}, "reg.example/app", nil},
		"a lookalike is not the host": {[]string{"reg.example"}, "reg.example.evil.example/app", nil},
		"nor is a longer name":        {[]string{"reg.example"}, "myreg.example/app", nil},
		"nowhere":                     {[]string{"", "/", "https://", "https:///a", "%zz", "a b"}, "reg.example/app", nil},
		"in the order of secrets":     {[]string{"reg.example", "https://reg.example"}, "reg.example/app", []string{"reg.example", "https://reg.example"}},
	} {
		t.Run(name, func(t *testing.T) {
			var auths []podmill.ImageAuth
			for _, place := range tc.places {
				auths = append(auths, podmill.ImageAuth{Username: "u", Password: "for " + place, ServerAddress: place})
			}
			var want []podmill.ImageAuth
			for _, place := range tc.want {
				want = append(want, podmill.ImageAuth{Username: "u", Password: "for " + place})
			}
			if diff := cmp.Diff(want, match(auths, tc.repository)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestSameCredentialOnce shows that a credential that several secrets hold is tried once.
func TestSameCredentialOnce(t *testing.T) {
	a := podmill.ImageAuth{Username: "u", Password: "p", ServerAddress: "reg.example"}
	b := a
	b.ServerAddress = "https://reg.example/v2/"
	if got := match([]podmill.ImageAuth{a, b, a}, "reg.example/app"); len(got) != 1 {
		t.Errorf("%d credentials", len(got))
	}
}

// TestMatchAgainstPrefixes holds matching against what it means where there is no pattern: the place is the beginning of the repository, on a host
// of its own, and the longer place comes first.
func TestMatchAgainstPrefixes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		repository := rapid.StringMatching(`[ab]\.x(:1)?(/[ab]){1,3}`).Draw(t, "repository")
		places := rapid.SliceOfDistinct(rapid.StringMatching(`[ab]\.x(:1)?(/[ab]){0,3}`), rapid.ID[string]).Draw(t, "places")
		var auths []podmill.ImageAuth
		var want []string
		for i, place := range places {
			auths = append(auths, podmill.ImageAuth{Username: fmt.Sprint(i), Password: place, ServerAddress: place})
			host, _, _ := strings.Cut(place, "/")
			if strings.HasPrefix(repository, host+"/") && strings.HasPrefix(repository, place) {
				want = append(want, place)
			}
		}
		slices.SortStableFunc(want, func(a, b string) int { return len(b) - len(a) })
		var got []string
		for _, auth := range match(auths, repository) {
			got = append(got, auth.Password)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

package image

import (
	"cmp"
	"net"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/podmill/podmill"
)

// match returns the credentials that are for a repository, such as registry.example:5000/team/app, the most specific first. It is the
// kubelet's rule: host and port are the same, the host's labels may be patterns, and the path is the beginning of the repository's. Where nothing
// matches, those of index.docker.io are for docker.io.
//
// What is returned has no ServerAddress, as the kubelet sends it: with one, containerd would use the credential for that very
// host alone, and neither for a mirror nor for registry-1.docker.io.
func match(auths []podmill.ImageAuth, repository string) []podmill.ImageAuth {
	host, repoPath, _ := strings.Cut(repository, "/")
	var found, hub []placed
	for _, auth := range auths {
		p, ok := placeOf(auth)
		switch {
		case !ok:
		case p.covers(host, "/"+repoPath):
			found = append(found, p)
		case p.host == "index.docker.io" && p.path == "" && host == "docker.io":
			hub = append(hub, p)
		}
	}
	if len(found) == 0 {
		found = hub
	}
	// In reverse order a longer path comes before what it begins with, and a letter before an asterisk.
	slices.SortStableFunc(found, func(a, b placed) int { return cmp.Compare(b.host+b.path, a.host+a.path) })
	var out []podmill.ImageAuth
	for _, p := range found {
		if !slices.Contains(out, p.auth) {
			out = append(out, p.auth)
		}
	}
	return out
}

// placed is a credential, and the place that it is for.
type placed struct {
	auth podmill.ImageAuth
	host string // and port; may have patterns
	path string // empty or with a slash before it
}

// placeOf reads a credential's ServerAddress: with a scheme or without, and with the path of the registry's API, which means the
// registry.
func placeOf(auth podmill.ImageAuth) (placed, bool) {
	address := auth.ServerAddress
	if !strings.HasPrefix(address, "https://") && !strings.HasPrefix(address, "http://") {
		address = "https://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return placed{}, false
	}
	p := placed{auth: auth, host: u.Host, path: u.Path}
	p.auth.ServerAddress = ""
	if strings.HasPrefix(p.path, "/v1/") || strings.HasPrefix(p.path, "/v2/") {
		p.path = p.path[len("/v1"):]
	}
	if p.path == "/" {
		p.path = ""
	}
	return p, true
}

// covers reports that the place holds a repository. A pattern stands for one label of a host name.
func (p placed) covers(host, repoPath string) bool {
	pattern, port := splitHost(p.host)
	labels, wantPort := splitHost(host)
	if port != wantPort || len(pattern) != len(labels) || !strings.HasPrefix(repoPath, p.path) {
		return false
	}
	for i := range pattern {
		if ok, err := path.Match(pattern[i], labels[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

// splitHost returns the labels of a host, and its port.
func splitHost(hostport string) (labels []string, port string) {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		host, port = hostport, ""
	}
	return strings.Split(host, "."), port
}

package server_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/podmill/podmill/server"
)

// reviewer knows the token "good" and grants what is in allow, as user, verb and subresource.
type reviewer struct {
	allow []string
	asked []string
}

func (r *reviewer) Authenticate(_ context.Context, token string) (*authenticationv1.UserInfo, error) {
	switch token {
	case "good":
		return &authenticationv1.UserInfo{Username: "token", Groups: []string{"people"}}, nil
	case "broken":
		return nil, errors.New("the API server at 10.0.0.1 is away")
	}
	return nil, nil
}

func (r *reviewer) Authorize(_ context.Context, spec *authorizationv1.SubjectAccessReviewSpec) (bool, string, error) {
	a := spec.ResourceAttributes
	asked := spec.User + "(" + strings.Join(spec.Groups, ",") + ") " + a.Verb + " " + a.Resource + "/" + a.Name + "/" + a.Subresource
	r.asked = append(r.asked, asked)
	if slices.Contains(r.allow, "error") {
		return false, "", errors.New("the API server at 10.0.0.1 is away")
	}
	return slices.Contains(r.allow, asked), "", nil
}

func TestGuard(t *testing.T) {
	const proxy = "token(people) get nodes/node1/proxy"
	for _, tc := range []struct {
		name, method, target, authorization string
		allow                               []string
		code                                int
		body                                string
	}{
		{"nobody", "GET", "/pods", "", nil, 401, "Unauthorized"},
		{"nobody, and no health either", "GET", "/healthz", "", nil, 401, "Unauthorized"},
		{"a wrong token", "GET", "/pods", "Bearer bad", nil, 401, "Unauthorized"},
		{"an empty token", "GET", "/pods", "Bearer ", nil, 401, "Unauthorized"},
		{"a password", "GET", "/pods", "Basic Z29vZDpnb29k", nil, 401, "Unauthorized"},
		{"authentication away", "GET", "/pods", "Bearer broken", nil, 401, "unable to authenticate"},
		{"authorization away", "GET", "/pods", "Bearer good", []string{"error"}, 500, "unable to authorize"},
		{"no right", "GET", "/pods", "Bearer good", nil, 403, "Forbidden (user=token, verb=get, resource=nodes, subresource=proxy)"},
		{"the old right", "GET", "/pods", "bearer good", []string{proxy}, 200, "through"},
		{"the fine right", "GET", "/pods", "Bearer good", []string{"token(people) get nodes/node1/pods"}, 200, "through"},
		{"health", "GET", "/healthz", "Bearer good", []string{"token(people) get nodes/node1/healthz"}, 200, "through"},
		{"logs are no pods", "GET", "/containerLogs/default/web/c", "Bearer good", []string{"token(people) get nodes/node1/pods"}, 403, "subresource=proxy"},
		{"logs", "GET", "/containerLogs/default/web/c", "Bearer good", []string{proxy}, 200, "through"},
		{"a command takes more than a look", "GET", "/exec/default/web/c", "Bearer good", []string{proxy}, 403, "verb=create"},
		{"a command", "GET", "/exec/default/web/c", "Bearer good", []string{"token(people) create nodes/node1/proxy"}, 200, "through"},
		{"other paths", "DELETE", "/anything", "Bearer good", []string{"token(people) delete nodes/node1/proxy"}, 200, "through"},
		{"other methods", "PROPFIND", "/anything", "Bearer good", []string{proxy}, 200, "through"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			through := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "through") })
			r := httptest.NewRequest(tc.method, tc.target, nil)
			r.Header.Set("Authorization", tc.authorization)
			w := httptest.NewRecorder()
			server.Guard("node1", &reviewer{allow: tc.allow}, through).ServeHTTP(w, r)
			if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.body) || strings.Contains(w.Body.String(), "10.0.0.1") {
				t.Errorf("%d %q; want %d and %q in it", w.Code, w.Body, tc.code, tc.body)
			}
		})
	}
}

// A client certificate that the server has verified says who asks; one that it has not says nothing.
func TestGuardKnowsClientCertificates(t *testing.T) {
	allow := []string{"apiserver(system:masters,system:authenticated) get nodes/node1/pods"}
	r := &reviewer{allow: allow}
	s := httptest.NewUnstartedServer(server.Guard("node1", r, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	known, unknown, nameless := certificate(t, "apiserver"), certificate(t, "apiserver"), certificate(t, "")
	pool := x509.NewCertPool()
	pool.AddCert(known.Leaf)
	pool.AddCert(nameless.Leaf)
	s.TLS = &tls.Config{ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: pool, MinVersion: tls.VersionTLS13}
	s.StartTLS()
	defer s.Close()
	for _, tc := range []struct {
		name string
		cert *tls.Certificate
		code int
	}{{"known", known, 200}, {"none", nil, 401}, {"without a name", nameless, 401}, {"unknown", unknown, 0}} {
		client := s.Client()
		config := client.Transport.(*http.Transport).TLSClientConfig
		config.Certificates = nil
		if tc.cert != nil {
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return tc.cert, nil }
		} else {
			config.GetClientCertificate = nil
		}
		client.CloseIdleConnections()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/pods", nil)
		if err != nil {
			t.Fatal(err)
		}
		code := 0
		if response, err := client.Do(request); err == nil {
			code = response.StatusCode
			_ = response.Body.Close()
		}
		if code != tc.code {
			t.Errorf("%s: %d, want %d; asked: %v", tc.name, code, tc.code, r.asked)
		}
	}
}

// certificate makes a client certificate that signs itself.
func certificate(t *testing.T, name string) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name, Organization: []string{"system:masters"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

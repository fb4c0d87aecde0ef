package server_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/podmill/podmill/server"
)

// shown is a server by certificates in files. It says who its client is.
type shown struct {
	*testing.T
	cert, key, clientCA string
	address             string
	log                 chan string
}

func show(t *testing.T, first *tls.Certificate, authority *tls.Certificate) *shown {
	t.Helper()
	dir := t.TempDir()
	s := &shown{T: t, cert: filepath.Join(dir, "tls.crt"), key: filepath.Join(dir, "tls.key"), clientCA: filepath.Join(dir, "ca.crt"), log: make(chan string, 100)}
	s.put(s.cert, certificatePEM(first))
	s.put(s.key, keyPEM(t, first))
	s.put(s.clientCA, certificatePEM(authority))
	config, err := server.TLSConfig(s.cert, s.key, s.clientCA)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = listener.Addr().String()
	log := funcr.New(func(_, args string) { s.log <- args }, funcr.Options{})
	served := &http.Server{
		TLSConfig: config, ReadHeaderTimeout: time.Minute,
		BaseContext: func(net.Listener) context.Context { return logr.NewContext(context.Background(), log) },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if len(r.TLS.VerifiedChains) > 0 {
				_, _ = io.WriteString(w, r.TLS.VerifiedChains[0][0].Subject.CommonName)
			}
		}),
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = served.ServeTLS(listener, "", "") }()
	t.Cleanup(func() { _ = served.Close(); <-ended })
	return s
}

// put replaces a file at once.
func (s *shown) put(path string, data []byte) {
	s.Helper()
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		s.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		s.Fatal(err)
	}
}

// ask connects anew, and returns by what certificate the server shows itself and whom it takes the client for.
func (s *shown) ask(client *tls.Certificate, cache tls.ClientSessionCache) (serverCert *x509.Certificate, user string, err error) {
	s.Helper()
	config := &tls.Config{InsecureSkipVerify: true, ClientSessionCache: cache} //nolint:gosec // the test looks at the certificate itself
	if client != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return client, nil }
	}
	http1 := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(s.Context(), http.MethodGet, "https://"+s.address+"/", nil)
	if err != nil {
		s.Fatal(err)
	}
	response, err := http1.Do(request)
	if err != nil {
		return nil, "", err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	return response.TLS.PeerCertificates[0], string(data), err
}

func (s *shown) wantCert(when string, want *tls.Certificate) {
	s.Helper()
	if got, _, err := s.ask(nil, nil); err != nil || !got.Equal(want.Leaf) {
		s.Errorf("%s the server does not show the certificate that it should: %v", when, err)
	}
}

func TestACertificateIsReplaced(t *testing.T) {
	first, second, authority := certificate(t, "first"), certificate(t, "second"), certificate(t, "authority")
	s := show(t, first, authority)
	s.wantCert("at first", first)
	s.put(s.cert, certificatePEM(second)) // whose key is still another's
	s.wantCert("in between", first)
	s.wantCert("in between", first)
	if n := len(s.log); n != 1 {
		t.Errorf("%d lines in the log, want 1", n)
	} else if line := <-s.log; !strings.Contains(line, "goes on with the certificates that it had") || !strings.Contains(line, s.key) {
		t.Errorf("the log says %s", line)
	}
	s.put(s.key, keyPEM(t, second))
	s.wantCert("at last", second)
	if err := os.Remove(s.key); err != nil {
		t.Fatal(err)
	}
	s.wantCert("without a key", second)
}

// An authority that is replaced is not believed from then on, also not by a session that was begun before.
func TestAnAuthorityIsReplaced(t *testing.T) {
	old, next := certificate(t, "old"), certificate(t, "next")
	s := show(t, certificate(t, "server"), old)
	cache := tls.NewLRUClientSessionCache(10)
	if _, user, err := s.ask(old, cache); err != nil || user != "old" {
		t.Errorf("the client is taken for %q, %v", user, err)
	}
	if _, _, err := s.ask(next, nil); err == nil {
		t.Error("a certificate of an unknown authority is taken")
	}
	s.put(s.clientCA, certificatePEM(next))
	if _, user, err := s.ask(next, nil); err != nil || user != "next" {
		t.Errorf("the client is taken for %q, %v", user, err)
	}
	if _, user, err := s.ask(old, cache); err == nil {
		t.Errorf("the client is taken for %q on the word of an authority that was taken away", user)
	}
	s.put(s.clientCA, []byte("nothing"))
	if _, user, err := s.ask(next, nil); err != nil || user != "next" {
		t.Errorf("beside a file of no use the client is taken for %q, %v", user, err)
	}
}

func TestTLSConfigNamesTheFile(t *testing.T) {
	c := certificate(t, "c")
	dir := t.TempDir()
	s := &shown{T: t}
	cert, key, none := filepath.Join(dir, "crt"), filepath.Join(dir, "key"), filepath.Join(dir, "none")
	s.put(cert, certificatePEM(c))
	s.put(key, keyPEM(t, c))
	for _, tc := range []struct{ cert, key, ca, want string }{
		{none, key, "", none}, {cert, none, "", none}, {cert, key, none, none}, {cert, key, key, key}, {cert, cert, "", cert}, {cert, key, "", ""},
	} {
		_, err := server.TLSConfig(tc.cert, tc.key, tc.ca)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%v: %v", tc, err)
		}
	}
}

func certificatePEM(c *tls.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]})
}

func keyPEM(t *testing.T, c *tls.Certificate) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

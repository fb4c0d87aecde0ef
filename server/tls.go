package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync"

	"github.com/go-logr/logr"
)

// TLSConfig returns how to serve with a certificate, its key, and the authorities of client certificates, all in PEM files. Without authorities, clientCA empty, no
// certificates are asked for.
//
// The files may be replaced while it is served: they are looked at with every connection, and what is new is used from that connection on. While what is
// there cannot be used, as between the replacing of a certificate and of its key, that is the last that could; the reason is in the log of
// the connection's context.
//
// Sessions are not resumed: who is known by a certificate shows it each time, so that nobody is believed on the word of an authority that was taken away.
func TLSConfig(certificate, key, clientCA string) (*tls.Config, error) {
	f := &tlsFiles{certificate: certificate, key: key, clientCA: clientCA}
	f.seen = f.look()
	var err error
	if f.config, err = f.load(); err != nil {
		return nil, err
	}
	config := f.config.Clone()
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) { return f.current(hello.Context()), nil }
	return config, nil
}

// tlsFiles are the files that a server is configured by, and what was last read of them.
type tlsFiles struct {
	certificate, key, clientCA string

	mu        sync.Mutex
	seen      [3]os.FileInfo // as they were before they were read last with success
	config    *tls.Config    // of what could be used last
	complaint string         // about those that could not be
}

// current returns the configuration of what the files hold now.
func (f *tlsFiles) current(ctx context.Context) *tls.Config {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.look()
	for i := range now {
		if same(now[i], f.seen[i]) {
			continue
		}
		config, err := f.load()
		if err == nil {
			f.config, f.seen, f.complaint = config, now, ""
			break
		}
		if err.Error() != f.complaint { // files that were there may be well, and only reading them failed: they are tried again
			f.complaint = err.Error()
			logr.FromContextOrDiscard(ctx).Error(err, "the server goes on with the certificates that it had")
		}
		break
	}
	return f.config
}

// look looks at the files; what cannot be looked at is nil.
func (f *tlsFiles) look() (seen [3]os.FileInfo) {
	for i, path := range []string{f.certificate, f.key, f.clientCA} {
		if info, err := os.Stat(path); err == nil {
			seen[i] = info
		}
	}
	return seen
}

func same(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

func (f *tlsFiles) load() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(f.certificate, f.key)
	if err != nil {
		return nil, fmt.Errorf("read certificate %s and its key %s: %w", f.certificate, f.key, err)
	}
	config := &tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, SessionTicketsDisabled: true,
	}
	if f.clientCA == "" {
		return config, nil
	}
	authorities, err := os.ReadFile(f.clientCA)
	if err != nil {
		return nil, fmt.Errorf("read authorities of client certificates: %w", err)
	}
	config.ClientAuth, config.ClientCAs = tls.VerifyClientCertIfGiven, x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(authorities) {
		return nil, fmt.Errorf("no certificate of an authority is in %s", f.clientCA)
	}
	return config, nil
}

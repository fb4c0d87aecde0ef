package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/podmill/podmill/examples/internal/machine"
	"github.com/podmill/podmill/server"
)

// serving is where the node's own API is served, and how.
type serving struct {
	address  string
	port     int
	cert     string
	key      string
	clientCA string
	own      bool // the certificate is made here
	listener net.Listener
}

func (s *serving) define(flags *flag.FlagSet) {
	flags.StringVar(&s.address, "address", "0.0.0.0", "the `address` to serve the node's API on, to those who may use it")
	flags.IntVar(&s.port, "port", 10250, "the `port` to serve it on; 0 is one that is free")
	flags.StringVar(&s.cert, "tls-cert-file", "", "the `file` of the certificate to serve with (default one that signs itself, in <root-dir>/pki)")
	flags.StringVar(&s.key, "tls-private-key-file", "", "the `file` of its key")
	flags.StringVar(&s.clientCA, "client-ca-file", "", "the `file` of the authorities whose client certificates say who somebody is")
}

func (s *serving) complete(root string) error {
	if (s.cert == "") != (s.key == "") {
		return errors.New("a certificate needs its key: give --tls-cert-file and --tls-private-key-file, or neither")
	}
	if s.cert == "" {
		s.own, s.cert, s.key = true, filepath.Join(root, "pki", "kubelet.crt"), filepath.Join(root, "pki", "kubelet.key")
	}
	return nil
}

// listen takes the port.
func (s *serving) listen() (err error) {
	if s.listener, err = net.Listen("tcp", net.JoinHostPort(s.address, strconv.Itoa(s.port))); err != nil {
		return fmt.Errorf("serve the node's API (--address, --port): %w", err)
	}
	return nil
}

// bound is the port that was taken, as the Node says it; 0 if none was.
func (s *serving) bound() int32 {
	if s.listener == nil {
		return 0
	}
	return int32(s.listener.Addr().(*net.TCPAddr).Port) //nolint:gosec // a port has 16 bits
}

// serve returns the part that serves in the name of the node, or nothing where no port was taken. A certificate that is not given is made.
func (s *serving) serve(name string, handler http.Handler) (machine.Part, error) {
	if s.listener == nil {
		return func(ctx context.Context) error { <-ctx.Done(); return nil }, nil
	}
	if s.own {
		if err := s.certify(name); err != nil {
			return nil, fmt.Errorf("make a certificate to serve with, or give one by --tls-cert-file: %w", err)
		}
	}
	config, err := server.TLSConfig(s.cert, s.key, s.clientCA)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		// Anybody can fail to connect: that is no news.
		log := slog.NewLogLogger(logr.ToSlogHandler(logr.FromContextOrDiscard(ctx)), slog.LevelDebug)
		served := &http.Server{
			Handler: handler, TLSConfig: config, ErrorLog: log, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
			BaseContext: func(net.Listener) context.Context { return ctx }, // whoever follows a log does not keep the agent from ending
		}
		failed := make(chan error, 1)
		go func() { failed <- served.ServeTLS(s.listener, "", "") }()
		select {
		case err := <-failed:
			return fmt.Errorf("serve the node's API: %w", err)
		case <-ctx.Done():
		}
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if served.Shutdown(ending) != nil {
			_ = served.Close()
		}
		if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve the node's API: %w", err)
		}
		return nil
	}, nil
}

// recertify is the part that makes a certificate anew before the one that was made here ends. A connection that begins then gets it.
func (s *serving) recertify(name string) machine.Part {
	return func(ctx context.Context) error {
		if !s.own || s.listener == nil {
			<-ctx.Done()
			return nil
		}
		daily := time.NewTicker(24 * time.Hour)
		defer daily.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-daily.C:
			}
			if err := s.certify(name); err != nil {
				logr.FromContextOrDiscard(ctx).Error(err, "the certificate to serve with is not renewed; it is tried again tomorrow", "file", s.cert)
			}
		}
	}
}

// certify makes a certificate that signs itself, as the kubelet does, unless there is one that still serves for a while.
func (s *serving) certify(name string) error {
	if pair, err := tls.LoadX509KeyPair(s.cert, s.key); err == nil && time.Until(pair.Leaf.NotAfter) > 30*24*time.Hour {
		return nil
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey(name, nil, nil)
	if err != nil {
		return err
	}
	if err := cert.WriteCert(s.cert, certificate); err != nil {
		return err
	}
	return keyutil.WriteKey(s.key, key)
}

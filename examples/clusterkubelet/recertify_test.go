package main

import (
	"context"
	"crypto/tls"
	"testing"
	"testing/synctest"
	"time"
)

// A certificate that the node has made for itself never ends while it serves, and is the same for most of its life.
func TestACertificateIsRenewedWhileItServes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &serving{address: "127.0.0.1"}
		if err := s.complete(t.TempDir()); err != nil {
			t.Fatal(err)
		}
		if err := s.listen(); err != nil {
			t.Fatal(err)
		}
		defer s.listener.Close()
		if err := s.certify("n"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.recertify("n")(ctx) }()
		until := map[time.Time]bool{}
		for range 800 {
			time.Sleep(24 * time.Hour)
			synctest.Wait()
			pair, err := tls.LoadX509KeyPair(s.cert, s.key)
			if err != nil {
				t.Fatal(err)
			}
			if left := time.Until(pair.Leaf.NotAfter); left < 29*24*time.Hour {
				t.Fatalf("it serves with a certificate that ends in %v", left)
			}
			until[pair.Leaf.NotAfter] = true
		}
		if len(until) != 3 {
			t.Errorf("%d certificates in 800 days, want 3", len(until))
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

package grpcprobe

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func serve(t *testing.T, register func(*grpc.Server)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	register(s)
	done := make(chan error)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

func TestCheck(t *testing.T) {
	h := health.NewServer()
	h.SetServingStatus("down", healthpb.HealthCheckResponse_NOT_SERVING)
	serving := serve(t, func(s *grpc.Server) { healthpb.RegisterHealthServer(s, h) })
	plain := serve(t, func(*grpc.Server) {})
	silent, err := net.Listen("tcp", "127.0.0.1:0") // it accepts and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	for _, tc := range []struct{ name, address, service, want string }{
		{"serving", serving, "", ""},
		{"not serving", serving, "down", `service unhealthy (responded with "NOT_SERVING")`},
		{"unknown service", serving, "none", "error: health rpc probe failed: rpc error: code = NotFound"},
		{"no health service", plain, "", "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): unknown service grpc.health.v1.Health"},
		{"silent", silent.Addr().String(), "", "timeout: health rpc did not complete within 300ms"},
		{"closed", closed.Addr().String(), "", "connection refused"},
	} {
		within := time.Minute // the machine may be busy
		if tc.name == "silent" {
			within = 300 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(t.Context(), within)
		err := Check(ctx, tc.address, tc.service)
		cancel()
		if got := fmt.Sprint(err); tc.want == "" && err != nil || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

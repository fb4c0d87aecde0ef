// Package grpcprobe asks gRPC health services how they are. It is apart from package probe so that only who wants gRPC probes
// links gRPC:
//
//	probes := probe.New(runtime.Exec, inbox.Put, probe.WithGRPC(grpcprobe.Check))
package grpcprobe

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/podmill/podmill/internal/httpget"
)

const (
	maxMessage = 10 << 10 // of an answer, in bytes
	maxHeaders = 64 << 10
)

// Check asks the health service (grpc.health.v1) at an address, without encryption, how a service is. It returns nil if that is
// SERVING, and else what is wrong, in the kubelet's words. It is done when ctx is, leaves nothing open, and may be called concurrently.
func Check(ctx context.Context, address, service string) error {
	within := timeLeft(ctx)
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUserAgent(httpget.UserAgent(httpget.ForProbe)),
		grpc.WithNoProxy(), grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(),
		grpc.WithMaxHeaderListSize(maxHeaders),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)))
	if err != nil {
		return fmt.Errorf("error: failed to connect service at %q: %w", address, err)
	}
	defer func() { _ = conn.Close() }()

	answer, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: service})
	switch status.Code(err) {
	case codes.OK:
	case codes.Unimplemented:
		return fmt.Errorf("error: this server does not implement the grpc health protocol (grpc.health.v1.Health): %s", status.Convert(err).Message())
	case codes.DeadlineExceeded:
		return fmt.Errorf("timeout: health rpc did not complete within %v", within)
	default:
		return fmt.Errorf("error: health rpc probe failed: %w", err)
	}
	if answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		return fmt.Errorf("service unhealthy (responded with %q)", answer.GetStatus())
	}
	return nil
}

// timeLeft is what a deadline leaves, in whole milliseconds: the probe's timeout, as people have written it.
func timeLeft(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return time.Until(deadline).Round(time.Millisecond)
}

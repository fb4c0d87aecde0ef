package csi

import (
	"context"
	"fmt"
	"net"
	"time"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/podmill/podmill/volume"
	"github.com/podmill/podmill/volume/internal/patience"
)

// driver is a driver that has registered.
type driver struct {
	name     string
	endpoint string // the path of its socket
	socket   string // by which it registered
	node     storagev1.CSINodeDriver
	topology map[string]string
	can      capabilities
	timeout  time.Duration
	observer Observer
}

// capabilities are what a driver can do on a node.
type capabilities map[csipb.NodeServiceCapability_RPC_Type]bool

// call calls a driver. Each call has a connection of its own, as in the kubelet: a driver that was started anew is reached at once. It also has the whole time that a driver
// may take: what came before it, such as waiting for an attachment, has ended well.
func (d *driver) call(ctx context.Context, name string, do func(ctx context.Context, node csipb.NodeClient) error) error {
	patience.Renew(ctx)
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	end, _ := ctx.Deadline()
	err := dial(d.endpoint, func(conn grpc.ClientConnInterface) error { return do(ctx, csipb.NewNodeClient(conn)) })
	d.observer.called(d.name, name, time.Since(start), err)
	switch code := status.Code(err); {
	case err == nil:
		return nil
	case code == codes.DeadlineExceeded && time.Until(end) < time.Second:
		// Long before the end it says so of something else. It knows when the end is, and may be the first to say that it has come.
		return fmt.Errorf("CSI driver %s did not answer %s within %v, see what keeps it: %w", d.name, name, end.Sub(start).Round(time.Millisecond), err)
	case code == codes.Unavailable:
		return fmt.Errorf("CSI driver %s cannot be reached for %s at %s, see whether it runs: %w", d.name, name, d.endpoint, err)
	default:
		return fmt.Errorf("%s of CSI driver %s: %w", name, d.name, err)
	}
}

// isFinal reports that a driver has refused a call and does nothing any more; what it has done it should have undone. After any other error it may still be at it. The rule is
// the kubelet's.
func isFinal(err error) bool {
	switch status.Code(err) {
	case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.ResourceExhausted, codes.Aborted:
		return false
	}
	return true
}

// dial connects to a socket for as long as do takes.
func dial(socket string, do func(grpc.ClientConnInterface) error) error {
	conn, err := grpc.NewClient("passthrough:///"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"),
		grpc.WithNoProxy(), grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(), grpc.WithUnaryInterceptor(guardWords),
		grpc.WithContextDialer(func(ctx context.Context, path string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}))
	if err != nil {
		return fmt.Errorf("connect to %s: %w", socket, err)
	}
	defer func() { _ = conn.Close() }()
	return do(conn)
}

// find returns a driver that is registered. Else the error says when it may be.
func (d *Drivers) find(name string) (*driver, error) {
	found, changed := d.registry.find(name)
	if found == nil {
		return nil, volume.LaterError{
			Err:     fmt.Errorf("driver name %s not found in the list of registered CSI drivers: see that it runs on this node and registers in %s", name, d.layout.registrations()),
			Changed: changed,
		}
	}
	return found, nil
}

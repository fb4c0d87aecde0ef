package probe

import (
	"context"

	"github.com/podmill/podmill"
)

// Exec runs a command in a running container to its end, as [podmill.Execer] does, whose method it is where there is a
// runtime. Its context has a deadline. One that does not return when its context ends is given up, but not called again for the
// same probe before it has returned.
type Exec func(ctx context.Context, containerID string, command []string) (*podmill.ExecResult, error)

// GRPC asks the gRPC health service at an address (host and port) how a service is, and returns nil if it serves and else what is wrong.
// Check of the package grpcprobe is one.
type GRPC func(ctx context.Context, address, service string) error

// Option changes a default of a [Manager].
type Option func(*options)

type options struct {
	grpc     GRPC
	events   podmill.EventRecorder
	observer Observer
	hostIP   string
	parallel int
}

func newOptions(opts []Option) options {
	o := options{hostIP: "127.0.0.1", parallel: 128}
	for _, opt := range opts {
		opt(&o)
	}
	o.parallel = max(1, o.parallel)
	return o
}

// WithGRPC says how to carry out gRPC probes; without it they have no result.
func WithGRPC(check GRPC) Option { return func(o *options) { o.grpc = check } }

// WithEvents says who is told what people should know: Unhealthy and ProbeWarning. Without it nobody is.
func WithEvents(events podmill.EventRecorder) Option { return func(o *options) { o.events = events } }

// WithObserver says who is told of what happens.
func WithObserver(observer Observer) Option { return func(o *options) { o.observer = observer } }

// WithHostIP is where pods in the host's network are probed: the address that is in their status. The default is 127.0.0.1.
func WithHostIP(ip string) Option { return func(o *options) { o.hostIP = ip } }

// WithParallel is how many probes may begin at once; the default is 128. One that takes long makes room for another after 50 ms.
func WithParallel(n int) Option { return func(o *options) { o.parallel = n } }

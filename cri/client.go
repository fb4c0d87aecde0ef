package cri

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill"
)

// maxMessage is what the kubelet takes, too: a listing of thousands of containers fits.
const maxMessage = 16 << 20

// Client is a runtime behind a CRI socket.
type Client struct {
	path        string // of the socket
	conn        *grpc.ClientConn
	runtime     runtimeapi.RuntimeServiceClient
	images      runtimeapi.ImageServiceClient
	translate   *translation
	opts        options
	turns       *turns        // of calls that start something
	connections atomic.Uint64 // that were made
	listsWhole  atomic.Uint64 // the connection whose runtime streams no lists
	known       atomic.Pointer[identity]
}

var ( // what a client offers
	_ podmill.Runtime        = (*Client)(nil)
	_ podmill.EventStreamer  = (*Client)(nil)
	_ podmill.StatusReporter = (*Client)(nil)
	_ podmill.LogReopener    = (*Client)(nil)
	_ podmill.ExecStreamer   = (*Client)(nil)
	_ podmill.Resizer        = (*Client)(nil)
)

// Dial connects to the runtime behind endpoint, unix:///path or a path, and makes sure that it speaks CRI. It waits for one that is
// starting, see [WithPatience]; the error says what is wrong with the endpoint, and the cure.
func Dial(ctx context.Context, endpoint string, opts ...Option) (*Client, error) {
	c, err := newClient(endpoint, opts)
	if err != nil {
		return nil, fmt.Errorf("container runtime at %q: %w", endpoint, err)
	}
	if err := c.meet(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("container runtime at %s: %w", endpoint, err), c.Close())
	}
	return c, nil
}

// newClient returns a client that is not connected yet.
func newClient(endpoint string, opts []Option) (*Client, error) {
	path, err := socketPath(endpoint)
	if err != nil {
		return nil, err
	}
	c := &Client{path: path, opts: defaults()}
	for _, opt := range opts {
		opt(&c.opts)
	}
	if err := c.opts.validate(); err != nil {
		return nil, err
	}
	c.translate = &translation{
		cpuPeriod: c.opts.cpuPeriod.Microseconds(), seccompRoot: c.opts.seccompRoot, memoryQoS: c.opts.memoryQoS, swap: c.opts.swap,
		host: lookAround(os.DirFS("/")),
	}
	c.conn, err = grpc.NewClient("passthrough:///"+path,
		grpc.WithAuthority("localhost"), // a path is none
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(c.connect),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second},
			MinConnectTimeout: 5 * time.Second,
		}))
	if err != nil {
		return nil, err
	}
	c.turns = newTurns(c.opts.starts)
	c.runtime, c.images = runtimeapi.NewRuntimeServiceClient(c.conn), runtimeapi.NewImageServiceClient(c.conn)
	return c, nil
}

// connect makes a connection, and counts it.
func (c *Client) connect(ctx context.Context, _ string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", c.path)
	if err == nil {
		c.connections.Add(1)
	}
	return conn, err
}

// Close ends the connection, and the calls that are under way.
func (c *Client) Close() error { return errors.Join(c.conn.Close(), c.turns.close()) }

// meet waits until the runtime has said who it is.
func (c *Client) meet(ctx context.Context) error {
	trying, patience := ctx, c.opts.patience
	if patience > 0 {
		var cancel context.CancelFunc
		trying, cancel = context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer within %v: %w", patience, context.DeadlineExceeded))
		defer cancel()
	}
	log := logr.FromContextOrDiscard(ctx)
	for wait, tries := 50*time.Millisecond, 0; ; wait, tries = min(2*wait, time.Second), tries+1 {
		c.conn.ResetConnectBackoff() // the waiting is done here
		err := c.introduce(trying)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		}
		if err = c.diagnose(err); patience <= 0 || errors.Is(err, fs.ErrPermission) {
			return err
		}
		if tries == 0 {
			log.Info("container runtime is not ready, trying again", "socket", c.path, "patience", patience, "reason", err.Error())
		}
		select {
		case <-trying.Done():
			if ctx.Err() == nil {
				return err
			}
		case <-time.After(wait):
		}
	}
}

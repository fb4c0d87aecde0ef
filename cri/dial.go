package cri

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/cpu"
)

// maxMessage is what the kubelet takes, too: a listing of thousands of containers fits.
const maxMessage = 16 << 20

// Client is a runtime behind a CRI socket.
type Client struct {
	conn    *grpc.ClientConn
	runtime runtimeapi.RuntimeServiceClient
	images  runtimeapi.ImageServiceClient
	opts    options
	name    string
	version string
}

var ( // what a client offers
	_ podmill.Runtime        = (*Client)(nil)
	_ podmill.EventStreamer  = (*Client)(nil)
	_ podmill.StatusReporter = (*Client)(nil)
	_ podmill.LogReopener    = (*Client)(nil)
)

// Option changes a default of a [Client].
type Option func(*options)

type options struct {
	translation
	timeout  time.Duration
	patience time.Duration
	observer Observer
}

// WithTimeout is how long the runtime may take for a call, beside the grace period of a stop; the default is the kubelet's 2 minutes.
// Pulls and commands take as long as their contexts let them.
func WithTimeout(d time.Duration) Option { return func(o *options) { o.timeout = d } }

// WithPatience is how long Dial waits for a runtime that is not there yet, or not ready; the default is 10 s.
func WithPatience(d time.Duration) Option { return func(o *options) { o.patience = d } }

// WithCPUPeriod is the period of CPU limits in microseconds; the default is 100,000. A limit means the same with any.
func WithCPUPeriod(us int64) Option { return func(o *options) { o.cpuPeriod = us } }

// WithSeccompRoot is the directory below which Localhost seccomp profiles are; the default is the kubelet's
// /var/lib/kubelet/seccomp.
func WithSeccompRoot(dir string) Option { return func(o *options) { o.seccompRoot = dir } }

// WithObserver says who is told of calls.
func WithObserver(observer Observer) Option { return func(o *options) { o.observer = observer } }

// Observer is told of what a client does. A nil func is not called; each returns at once.
type Observer struct {
	// Called follows each call, with the CRI's name of the method.
	Called func(method string, took time.Duration, err error)
}

// Dial connects to the runtime behind endpoint, unix:///path or a path, and makes sure that it speaks CRI. It waits for one that is
// starting; see [WithPatience].
func Dial(ctx context.Context, endpoint string, opts ...Option) (*Client, error) {
	path, err := socketPath(endpoint)
	if err != nil {
		return nil, err
	}
	c := &Client{opts: options{
		translation: translation{cpuPeriod: cpu.DefaultPeriod, seccompRoot: "/var/lib/kubelet/seccomp"},
		timeout:     2 * time.Minute, patience: 10 * time.Second,
	}}
	for _, opt := range opts {
		opt(&c.opts)
	}
	dialer := func(ctx context.Context, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
	c.conn, err = grpc.NewClient("passthrough:///cri",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(dialer),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second}, MinConnectTimeout: 5 * time.Second,
		}))
	if err != nil {
		return nil, fmt.Errorf("container runtime at %s: %w", endpoint, err)
	}
	c.runtime, c.images = runtimeapi.NewRuntimeServiceClient(c.conn), runtimeapi.NewImageServiceClient(c.conn)
	if err := c.meet(ctx, path); err != nil {
		return nil, errors.Join(fmt.Errorf("container runtime at %s: %w", endpoint, err), c.conn.Close())
	}
	return c, nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

// meet waits until the runtime has said who it is.
func (c *Client) meet(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, c.opts.patience)
	defer cancel()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		v, err := call(ctx, c, "Version", c.opts.timeout, c.runtime.Version, &runtimeapi.VersionRequest{})
		if err == nil {
			c.name, c.version = v.RuntimeName, v.RuntimeVersion
			return nil
		}
		err = diagnose(path, err)
		if errors.Is(err, fs.ErrPermission) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}

// socketPath returns the path of a unix endpoint.
func socketPath(endpoint string) (string, error) {
	path := strings.TrimPrefix(endpoint, "unix://")
	if scheme, _, ok := strings.Cut(path, "://"); ok {
		return "", fmt.Errorf("container runtime endpoint %q: scheme %s is not supported, write unix:///path/to/socket", endpoint, scheme)
	}
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("container runtime endpoint %q is not an absolute path, write unix:///path/to/socket", endpoint)
	}
	return path, nil
}

// diagnose says what is wrong with a socket that does not answer as a CRI should, and what to do.
func diagnose(path string, err error) error {
	info, statErr := os.Stat(path)
	switch {
	case errors.Is(statErr, fs.ErrNotExist):
		return fmt.Errorf("there is no socket at %s: is the runtime running, and is this its CRI socket? (%w)", path, err)
	case statErr == nil && info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is not a socket: %w", path, err)
	case errors.Is(err, errors.ErrUnsupported):
		return fmt.Errorf("what answers at %s does not speak CRI v1: it is no container runtime, or its CRI plugin is disabled or has failed to start: %w", path, err)
	}
	conn, dialErr := net.DialTimeout("unix", path, time.Second)
	if errors.Is(dialErr, fs.ErrPermission) {
		return fmt.Errorf("no permission to open %s: run as root, or as a member of the group that owns it: %w", path, dialErr)
	}
	if dialErr != nil {
		return fmt.Errorf("nobody listens on %s: is the runtime running? (%w)", path, err)
	}
	_ = conn.Close()
	return err
}

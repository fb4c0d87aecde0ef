package cri

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// maxSocketPath is the longest path of a unix socket that the kernel takes.
const maxSocketPath = 107

// socketPath returns the path of a unix endpoint.
func socketPath(endpoint string) (string, error) {
	path := strings.TrimPrefix(endpoint, "unix://")
	if scheme, _, ok := strings.Cut(path, "://"); ok {
		return "", fmt.Errorf("endpoints of the kind %s are not supported, write unix:///path/to/socket", scheme)
	}
	if !filepath.IsAbs(path) {
		return "", errors.New("this is no absolute path, write unix:///path/to/socket")
	}
	if len(path) > maxSocketPath {
		return "", fmt.Errorf("the path has %d bytes, and that of a socket at most %d", len(path), maxSocketPath)
	}
	return path, nil
}

// diagnose says what is wrong with a socket that does not answer as a CRI should, and what to do.
func (c *Client) diagnose(err error) error {
	info, statErr := os.Stat(c.path)
	switch {
	case errors.Is(statErr, fs.ErrNotExist):
		return fmt.Errorf("there is no socket at %s: is the runtime running, and is this its CRI socket? (%w)", c.path, err)
	case statErr == nil && info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is not a socket: %w", c.path, err)
	case status.Code(err) == codes.Unimplemented:
		return fmt.Errorf("what answers at %s does not speak CRI v1: it is no container runtime or one that is too old, "+
			"or its CRI plugin is disabled (disabled_plugins in containerd's configuration) or has failed to start (see the runtime's log): %w", c.path, err)
	}
	conn, dialErr := net.DialTimeout("unix", c.path, time.Second)
	switch {
	case errors.Is(dialErr, fs.ErrPermission):
		return fmt.Errorf("no permission to open %s: run as root, or as a member of the group that owns it: %w", c.path, dialErr)
	case dialErr != nil:
		return fmt.Errorf("nobody listens on %s: is the runtime running? (%w)", c.path, err)
	}
	_ = conn.Close()
	return err
}

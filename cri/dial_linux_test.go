package cri

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Waiting gives nobody a permission: it is told at once.
func TestDialWithoutPermission(t *testing.T) {
	s := newServer(t).start(t)
	if err := os.Chmod(s.path, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := newClient(s.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if os.Getuid() == 0 {
		// Root may open everything; this thread is somebody else for a moment, and ends with the goroutine if it cannot turn back.
		runtime.LockOSThread()
		root, err := unix.SetfsuidRetUid(65534)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if _, err := unix.SetfsuidRetUid(root); err == nil {
				runtime.UnlockOSThread()
			}
		}()
	} else if err := os.Chmod(s.path, 0); err != nil {
		t.Fatal(err)
	}
	err = c.diagnose(status.Error(codes.Unavailable, "connection error"))
	is(t, err, os.ErrPermission)
	if !strings.Contains(err.Error(), "no permission to open "+s.path+": run as root") {
		t.Errorf("got %v", err)
	}
}

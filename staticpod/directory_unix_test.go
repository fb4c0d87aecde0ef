//go:build unix

package staticpod

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestNoRegularFiles shows that pipes, devices, sockets, and links to them or to nowhere are never opened, and that links to files are followed.
func TestNoRegularFiles(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	target := filepath.Join(elsewhere, "target")
	for _, err := range []error{
		syscall.Mkfifo(filepath.Join(dir, "fifo.yaml"), 0o600), // opening it would wait for a writer
		os.Symlink("/dev/zero", filepath.Join(dir, "device.yaml")),
		os.Symlink("nowhere", filepath.Join(dir, "lost.yaml")),
		os.Symlink("loop.yaml", filepath.Join(dir, "loop.yaml")),
		os.WriteFile(target, []byte(manifest("linked", "v1")), 0o600),
		os.Symlink(target, filepath.Join(dir, "link.yaml")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	r := newRig(t, dir, WithPeriod(20*time.Millisecond))
	r.gets("linked=v1")
	said := map[string]bool{}
	for len(r.problems) > 0 {
		said[(<-r.problems).String()] = true
	}
	want := map[string]bool{
		"device.yaml: is no regular file (remove it)":                  true,
		"fifo.yaml: is no regular file (remove it)":                    true,
		"lost.yaml: is a link that leads nowhere":                      true,
		"loop.yaml: cannot be read: too many levels of symbolic links": true,
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := os.WriteFile(target, []byte(manifest("linked", "v2")), 0o600); err != nil { // nothing tells of that
		t.Fatal(err)
	}
	r.gets("linked=v2")
}

package syncpod

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill/internal/testenv"
)

// B002: nothing is removed of a directory in which something is mounted, be it a file system of its own or a part of this one.
func TestNothingIsRemovedAcrossAMount(t *testing.T) {
	testenv.Root(t)
	s := onDisk(t)
	pods, data := filepath.Join(s.root, "pods"), t.TempDir()
	write(t, filepath.Join(data, "sub", "file"))
	must(t, os.Symlink("nowhere", filepath.Join(data, "link")))
	bind := filepath.Join(pods, "bind", "volume-subpaths", "v", "c", "0")
	tmpfs := filepath.Join(pods, "tmpfs", "volumes", "kubernetes.io~empty-dir", "mem ory")
	for dir, mount := range map[string]func(string) error{
		bind:  func(dir string) error { return unix.Mount(data, dir, "", unix.MS_BIND, "") },
		tmpfs: func(dir string) error { return unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k") },
	} {
		must(t, os.MkdirAll(dir, 0o750))
		if err := mount(dir); err != nil {
			t.Skipf("needs to mount: %v", err)
		}
		t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	}
	write(t, filepath.Join(pods, "bind", "etc-hosts"))
	must(t, os.MkdirAll(filepath.Join(pods, "empty", "volumes"), 0o750))

	before := tree(t, data)
	err := s.Cleanup(t.Context(), func(types.UID) bool { return false })
	for _, mount := range []string{bind, tmpfs} {
		if err == nil || !strings.Contains(err.Error(), mount+" is mounted, nothing in") {
			t.Errorf("error = %v, want %s named", err, mount)
		}
	}
	if after := tree(t, data); strings.Join(before, " ") != strings.Join(after, " ") {
		t.Errorf("the volume was %v and is %v", before, after)
	}
	if _, err := os.Stat(filepath.Join(pods, "bind", "etc-hosts")); err != nil {
		t.Error("something was removed beside a mount")
	}
	if _, err := os.Stat(filepath.Join(pods, "empty")); !os.IsNotExist(err) {
		t.Error("another orphan was not removed")
	}
}

func TestUnescape(t *testing.T) {
	for in, want := range map[string]string{`/a\040b`: "/a b", `/a\134b`: `/a\b`, `/a\`: `/a\`, `/a\9`: `/a\9`, `\777x`: `\777x`} {
		if got := unescape(in); got != want {
			t.Errorf("unescape(%q) = %q, want %q", in, got, want)
		}
	}
}

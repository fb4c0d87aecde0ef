package volume

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podmill/podmill/internal/testenv"
	"github.com/podmill/podmill/volume/internal/canary"
)

// Whatever is where a directory should be, nobody waits for it, what it leads to stays as it is, and when it is gone all is well.
func TestStrangeThingsInAVolumesPlace(t *testing.T) {
	testenv.Root(t)
	outsideOf := map[string]func(t *testing.T, at string){
		"a FIFO": func(t *testing.T, at string) { must(t, unix.Mkfifo(at, 0o666)) },
		"a socket": func(t *testing.T, at string) {
			short, err := os.MkdirTemp("", "s") // a socket's path may not be long
			must(t, err)
			l, err := net.Listen("unix", filepath.Join(short, "s"))
			must(t, err)
			t.Cleanup(func() { _ = l.Close(); _ = os.RemoveAll(short) })
			must(t, os.Rename(filepath.Join(short, "s"), at))
		},
		"a file":   func(t *testing.T, at string) { must(t, os.WriteFile(at, []byte("precious"), 0o600)) },
		"a device": func(t *testing.T, at string) { must(t, unix.Mknod(at, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3)))) },
		"a link":   func(t *testing.T, at string) { must(t, os.Symlink(canary.Tree(t), at)) },
		"a mount": func(t *testing.T, at string) {
			must(t, os.Mkdir(at, 0o755))
			bind(t, canary.Tree(t), at)
		},
	}
	places := []string{"", "volumes", "volumes/kubernetes.io~configmap", "volumes/kubernetes.io~configmap/v", "volume-subpaths", "volume-subpaths/v", "volume-subpaths/v/uses-v"}
	for thing, put := range outsideOf {
		for _, place := range places {
			t.Run(thing+" in the place of "+place, func(t *testing.T) {
				r := newRig(t)
				r.configMap("cm", map[string]string{"key": "value"})
				pod := podOf(configMapSource("cm"))
				at := filepath.Join(r.root, "pods", string(pod.UID), place)
				must(t, os.MkdirAll(filepath.Dir(at), 0o755))
				put(t, at)
				before := lstat(t, at)
				ctx, cancel := contextOf(t)
				defer cancel()
				start := time.Now()
				_, err := r.MountVolumes(ctx, pod)
				if err == nil {
					_, err = r.part(pod, "key")
				}
				_ = r.UnmountVolumes(t.Context(), pod.UID)
				if waited := time.Since(start); waited > 30*time.Second {
					t.Errorf("waited %v", waited)
				}
				if err == nil || !strings.Contains(err.Error(), at) {
					t.Errorf("error %v, want one that names %s", err, at)
				}
				if after := lstat(t, at); thing != "a link" && after != before {
					t.Errorf("it was %s and is %s", before, after)
				}
				_ = unix.Unmount(at, unix.MNT_DETACH)
				must(t, os.RemoveAll(at))
				r.restart()
				r.mount(pod)
				_, err = r.part(pod, "key")
				must(t, err)
				r.unmount(pod)
			})
		}
	}
}

// lstat returns what is at a path, without following it.
func lstat(t *testing.T, at string) string {
	t.Helper()
	info, err := os.Lstat(at)
	if os.IsNotExist(err) {
		return "gone"
	}
	must(t, err)
	return info.Mode().Type().String()
}

// A file system that fills up in the middle of an update leaves the old version whole, and nothing of the new one.
func TestFullDisk(t *testing.T) {
	testenv.Root(t)
	r := newRig(t)
	root := filepath.Join(r.root, "pods")
	must(t, os.MkdirAll(root, 0o755), unix.Mount("tmpfs", root, "tmpfs", 0, "size=128k"))
	t.Cleanup(func() { must(t, unix.Unmount(root, unix.MNT_DETACH)) })
	r.configMap("cm", map[string]string{"key": "old"})
	pod := podOf(configMapSource("cm"))
	path := r.mount(pod)
	before := r.list("pods")
	r.configMap("cm", map[string]string{"key": "new", "a": strings.Repeat("x", 50<<10), "b": strings.Repeat("x", 50<<10), "c": strings.Repeat("x", 50<<10)})
	r.mount(pod) // which stays ready
	holds(t, path, map[string]string{"key": "old"})
	if events := r.events.String(); !strings.Contains(events, "no space left on device") {
		t.Errorf("people are told %q", events)
	}
	if left := r.list("pods"); strings.Join(left, " ") != strings.Join(before, " ") {
		t.Errorf("left %v, want %v", left, before)
	}
	r.configMap("cm", map[string]string{"key": "small"})
	r.mount(pod)
	holds(t, path, map[string]string{"key": "small"})
	r.unmount(pod)
}

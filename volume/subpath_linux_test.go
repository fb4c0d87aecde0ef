package volume

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/testenv"
	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/volume/internal/canary"
)

// part mounts a part of the volume called v for the container that uses it.
func (r *rig) part(pod *corev1.Pod, path string) (string, error) {
	r.t.Helper()
	return r.MountSubPath(r.t.Context(), pod, podmill.SubPath{Container: "uses-v", Volume: "v", Path: path})
}

func read(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return string(data)
}

// A part is where the kubelet has it, and shows what is in the volume and nothing around it.
func TestSubPath(t *testing.T) {
	testenv.Root(t)
	for name, medium := range map[string]corev1.StorageMedium{"on disk": corev1.StorageMediumDefault, "in memory": corev1.StorageMediumMemory} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			pod := podOf(emptyDirSource(medium), fsGroupOf(2000))
			volume := r.mount(pod)
			part, err := r.part(pod, "a/b")
			must(t, err)
			if want := filepath.Join(r.root, "pods", string(pod.UID), "volume-subpaths/v/uses-v/0"); part != want {
				t.Errorf("the part is at %s, want %s", part, want)
			}
			must(t, os.WriteFile(filepath.Join(volume, "a/b/file"), []byte("x"), 0o644))
			if read(t, filepath.Join(part, "file")) != "x" {
				t.Error("the part does not show what is in the volume")
			}
			if got := owner(t, part); got != "0:2000 2777" {
				t.Errorf("the directory that was made is %s, want the volume's 0:2000 2777", got)
			}
			r.unmount(pod)
		})
	}
}

// B040: a key of a ConfigMap that is mounted by subPath changes. Who has it keeps it; who is started anew has the new one.
func TestSubPathOfAConfigMap(t *testing.T) {
	testenv.Root(t)
	r := newRig(t)
	r.configMap("cm", map[string]string{"key": "old", "dir": "x"})
	pod := podOf(configMapSource("cm"))
	r.mount(pod)
	part, err := r.part(pod, "key")
	must(t, err)
	// What runs has the mount in a namespace of its own, which another bind is as good as.
	running := filepath.Join(t.TempDir(), "running")
	must(t, os.WriteFile(running, nil, 0o644))
	bind(t, part, running)
	for i, content := range []string{"new", "newer", "newest"} {
		r.configMap("cm", map[string]string{"key": content})
		if i == 1 {
			r.restart()
		}
		r.mount(pod)
		if got := read(t, running); got != "old" {
			t.Errorf("the container that runs sees %q", got)
		}
		again, err := r.part(pod, "key")
		must(t, err)
		if got := read(t, again); again != part || got != content {
			t.Errorf("started anew it sees %q at %s, want %q at %s", got, again, content, part)
		}
	}
	r.unmount(pod)
	if got := read(t, running); got != "old" {
		t.Errorf("after the unmount, whoever still runs sees %q", got)
	}
}

// A part of a hostPath goes, and what it was a part of stays: also when only the disk tells of it.
func TestSubPathOfAHostPath(t *testing.T) {
	testenv.Root(t)
	for _, end := range []string{"unmounted", "unmounted after a restart", "cleaned up after a restart"} {
		t.Run(end, func(t *testing.T) {
			r := newRig(t)
			outside := canary.Tree(t)
			pod := podOf(hostPathSource(outside, corev1.HostPathUnset))
			r.mount(pod)
			part, err := r.part(pod, "sub/sub")
			must(t, err)
			if got := read(t, filepath.Join(part, "file")); got != "precious sub/sub/file" {
				t.Errorf("it shows %q", got)
			}
			if end != "unmounted" {
				r.restart()
			}
			if strings.HasPrefix(end, "unmounted") {
				r.unmount(pod)
			} else {
				must(t, r.Cleanup(t.Context(), func(types.UID) bool { return false }))
			}
			if left := r.list("pods"); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// A part that is busy keeps the volume that it is of.
func TestSubPathThatIsBusy(t *testing.T) {
	testenv.Root(t)
	r := newRig(t)
	pod := podOf(emptyDirSource(""))
	volume := r.mount(pod)
	part, err := r.part(pod, "a")
	must(t, err, os.WriteFile(filepath.Join(volume, "a/file"), []byte("x"), 0o644))
	busy, err := os.Open(filepath.Join(part, "file"))
	must(t, err)
	if err := r.UnmountVolumes(t.Context(), pod.UID); err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("unmounted while it was busy: %v", err)
	}
	if got := read(t, filepath.Join(volume, "a/file")); got != "x" {
		t.Errorf("the volume has %q", got)
	}
	must(t, busy.Close())
	r.unmount(pod)
}

// Nothing that a pod says or has in its volumes leads out of them.
func TestSubPathThatLeadsOutside(t *testing.T) {
	testenv.Root(t)
	r := newRig(t)
	outside := canary.Tree(t)
	pod := podOf(emptyDirSource(""), podmilltest.Container("up", "i"))
	volume := r.mount(pod)
	must(t, os.Symlink(outside, filepath.Join(volume, "out")), os.Symlink("../..", filepath.Join(volume, "up")),
		os.WriteFile(filepath.Join(volume, "file"), nil, 0o644))
	for _, path := range []string{"out", "out/sub", "out/new", "up", "up/new", "..", "/", "file/new"} {
		if part, err := r.part(pod, path); err == nil || !strings.Contains(err.Error(), `subPath "`+path+`" of volume "v"`) {
			t.Errorf("%s: %q, %v, want an error that names it", path, part, err)
		}
	}
	for _, name := range []string{"..", ".", "", "a/b"} {
		for _, s := range []podmill.SubPath{{Container: name, Volume: "v", Path: "a"}, {Container: "c", Volume: name, Path: "a"}} {
			if part, err := r.MountSubPath(t.Context(), pod, s); err == nil {
				t.Errorf("%+v: %q, want an error", s, part)
			}
		}
	}
	if parts := r.list("pods/" + string(pod.UID) + "/volume-subpaths"); slices.ContainsFunc(parts, func(p string) bool { return strings.HasSuffix(p, "/0") }) {
		t.Errorf("left: %v", parts)
	}
	r.unmount(pod)
}

package volume

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill/internal/testenv"
	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/volume/internal/canary"
)

func none(types.UID) bool { return false }

// make makes directories below those of all pods; a name that ends in a letter after a dot is a file.
func (r *rig) make(paths ...string) {
	r.t.Helper()
	for _, path := range paths {
		at := filepath.Join(r.root, "pods", path)
		if strings.HasSuffix(path, ".file") {
			must(r.t, os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte("data"), 0o644))
		} else {
			must(r.t, os.MkdirAll(at, 0o755))
		}
	}
}

// B002: an orphan's directory with something mounted is left whole and reported; other orphans are cleaned all the same.
func TestOrphanWithAMount(t *testing.T) {
	testenv.Root(t)
	for name, at := range map[string]string{
		"of a volume":        "orphan/volumes/x~y/z",
		"of a subPath":       "orphan/volume-subpaths/v/c/0",
		"instead of volumes": "orphan/volumes",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			outside := canary.Tree(t)
			r.make("orphan/volumes/kubernetes.io~empty-dir/e/f.file", "other/volumes/kubernetes.io~empty-dir/e/f.file", at)
			before := r.list("pods/orphan")
			bind(t, outside, filepath.Join(r.root, "pods", at))
			err := r.Cleanup(t.Context(), none)
			if !errors.Is(err, errStrangeMount) || !strings.Contains(err.Error(), filepath.Join(r.root, "pods", at)) {
				t.Errorf("error %v, want one that names the mount", err)
			}
			for _, path := range before {
				if _, err := os.Lstat(filepath.Join(r.root, "pods/orphan", path)); err != nil && at != "orphan/volumes" {
					t.Errorf("removed: %v", err)
				}
			}
			if left := r.list("pods/other"); len(left) > 0 {
				t.Errorf("of the other orphan there is left: %v", left)
			}
		})
	}
}

// B002: directories that are empty go, a file stays and is named, a link goes and what it leads to stays.
func TestOrphanWithoutMounts(t *testing.T) {
	r := newRig(t)
	outside := canary.Tree(t)
	at := func(path string) string { return filepath.Join(r.root, "pods", path) }
	r.make("empty/volumes/x~y/z", "empty/volume-subpaths/v/c/0", "file/volumes/stray.file", "file/volumes/kubernetes.io~empty-dir/e",
		"full/volumes/x~y/z/data.file", "links/volumes/x~y", "links/volumes/kubernetes.io~secret", "wanted/volumes/kubernetes.io~empty-dir/e", "busy/volumes", "busy/etc-hosts.file")
	must(t, os.Symlink(outside, at("links/volumes/x~y/z")), os.Symlink(outside, at("links/volumes/kubernetes.io~secret/s")),
		os.Symlink(outside, at("links/volumes/link")), os.Symlink(outside, at("links/volume-subpaths")), os.Symlink(outside, at("link")),
		os.WriteFile(at("file-among-pods"), nil, 0o644))
	err := r.Cleanup(t.Context(), func(uid types.UID) bool { return uid == "wanted" })
	if err == nil {
		t.Fatal("no error")
	}
	for _, path := range []string{"file/volumes/stray.file", "full/volumes/x~y/z"} {
		if !strings.Contains(err.Error(), at(path)) {
			t.Errorf("the error does not name %s: %v", path, err)
		}
	}
	if strings.Contains(err.Error(), "empty/") || strings.Contains(err.Error(), "links") || strings.Contains(err.Error(), "busy") {
		t.Errorf("the error names what went well: %v", err)
	}
	want := []string{
		"busy", "busy/etc-hosts.file", "file", "file-among-pods", "file/volumes", "file/volumes/stray.file", "full", "full/volumes", "full/volumes/x~y",
		"full/volumes/x~y/z", "full/volumes/x~y/z/data.file", "link", "wanted", "wanted/volumes", "wanted/volumes/kubernetes.io~empty-dir", "wanted/volumes/kubernetes.io~empty-dir/e",
	}
	left := r.list("pods")
	slices.Sort(left)
	slices.Sort(want)
	if !slices.Equal(left, want) {
		t.Errorf("left:\n%v\nwant:\n%v", left, want)
	}
	must(t, os.RemoveAll(at("")))
}

// B053: a pod was deleted while the agent was down. Its volumes are known from the disk alone, and once only.
func TestOrphanVolumesAreTakenAway(t *testing.T) {
	testenv.Root(t)
	r := newRig(t)
	r.secret("s", map[string]string{"a": "1"})
	r.configMap("cm", map[string]string{"a": "1"})
	volumes := func(pod *corev1.Pod) {
		volume("m", emptyDirSource(corev1.StorageMediumMemory))(pod)
		volume("d", emptyDirSource(""))(pod)
		volume("s", secretSource("s"))(pod)
		volume("c", configMapSource("cm"))(pod)
	}
	gone, wanted := podmilltest.Pod("gone", volumes), podmilltest.Pod("wanted", volumes)
	r.mount(gone)
	r.mount(wanted)
	for _, volume := range []string{"m", "d"} {
		must(t, os.MkdirAll(r.place(gone, "kubernetes.io~empty-dir", volume, "a/b"), 0o755))
	}
	// A crash while a volume was made, and one while it was taken away.
	must(t, os.Mkdir(r.place(gone, "kubernetes.io~empty-dir", ".half"), 0o700), os.RemoveAll(r.place(gone, "kubernetes.io~configmap", "c", "a")))
	before := r.list("pods/" + string(wanted.UID))
	r.restart()
	keep := func(uid types.UID) bool { return uid == wanted.UID }
	for range 2 {
		must(t, r.Cleanup(t.Context(), keep))
		if left := r.list("pods/" + string(gone.UID)); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		if after := r.list("pods/" + string(wanted.UID)); !slices.Equal(before, after) {
			t.Errorf("of the pod that is wanted:\n%v\nwant:\n%v", after, before)
		}
	}
}

// After a clean-up that failed, a pod of that UID can start.
func TestOrphanComesBack(t *testing.T) {
	r := newRig(t)
	pod := podOf(emptyDirSource(""))
	stray := r.place(pod, "stray.file")
	r.make(string(pod.UID) + "/volumes/stray.file")
	for range 2 {
		if err := r.Cleanup(t.Context(), none); !errors.Is(err, errStrangeFile) {
			t.Errorf("clean up: %v", err)
		}
	}
	r.mount(pod)
	if err := r.UnmountVolumes(t.Context(), pod.UID); !errors.Is(err, errStrangeFile) {
		t.Errorf("unmount: %v", err)
	}
	if _, err := r.MountVolumes(t.Context(), pod); !errors.Is(err, ErrUnmounting) {
		t.Errorf("mount after an unmount that failed: %v", err)
	}
	must(t, os.Remove(stray))
	r.unmount(pod)
	r.mount(pod)
	r.unmount(pod)
}

// Each part of a volume that cannot be taken away is named, and hinders no other; the volume stays as it is.
func TestPartsThatStay(t *testing.T) {
	r := newRig(t)
	pod := podOf(emptyDirSource(""))
	data := filepath.Join(r.mount(pod), "data")
	part := func(name string) string {
		return filepath.Join(r.root, "pods", string(pod.UID), "volume-subpaths/v/c", name)
	}
	must(t, os.MkdirAll(part("1"), 0o755), os.WriteFile(data, nil, 0o600))
	for _, name := range []string{"0", "2"} {
		must(t, os.WriteFile(part(name), []byte("something"), 0o600))
	}
	err := r.UnmountVolumes(t.Context(), pod.UID)
	if err == nil || !strings.Contains(err.Error(), part("0")) || !strings.Contains(err.Error(), part("2")) || strings.Contains(err.Error(), part("1")) {
		t.Errorf("error %v, want one that names the two parts that stay", err)
	}
	if _, err := os.Stat(part("1")); !os.IsNotExist(err) {
		t.Errorf("the part that could go is there: %v", err)
	}
	if _, err := os.Stat(data); err != nil {
		t.Errorf("the volume was touched: %v", err)
	}
	must(t, os.Remove(part("0")), os.Remove(part("2")))
	r.unmount(pod)
}

// A privileged container has mounted something in its volume, and propagated that to the host.
func TestMountInsideAVolume(t *testing.T) {
	testenv.Root(t)
	for _, medium := range []corev1.StorageMedium{corev1.StorageMediumDefault, corev1.StorageMediumMemory} {
		r := newRig(t)
		outside := canary.Tree(t)
		pod := podOf(emptyDirSource(medium))
		inside := filepath.Join(r.mount(pod), "a/mount")
		must(t, os.MkdirAll(inside, 0o755))
		t.Run(string("medium "+medium), func(t *testing.T) {
			bind(t, outside, inside)
			if err := r.UnmountVolumes(t.Context(), pod.UID); err == nil || !strings.Contains(err.Error(), r.place(pod, "kubernetes.io~empty-dir", "v")) {
				t.Errorf("error %v, want one that names the place", err)
			}
			if _, err := os.Stat(filepath.Join(inside, "sub/file")); err != nil {
				t.Error(err)
			}
		})
		r.unmount(pod) // the mount is gone
	}
}

// What takes the place of a volume's directory, or of one on the way to it, is not followed, wherever it leads.
func TestLinksInAVolumesPlace(t *testing.T) {
	for _, path := range []string{"volumes", "volumes/kubernetes.io~configmap", "volumes/kubernetes.io~configmap/v", "volumes/kubernetes.io~configmap/v/..data"} {
		for name, target := range map[string]func(r *rig, pod *corev1.Pod) string{
			"outside": func(r *rig, _ *corev1.Pod) string { return canary.Tree(r.t) },
			"within the pod": func(r *rig, pod *corev1.Pod) string {
				r.make(string(pod.UID) + "/precious")
				at := filepath.Join(r.root, "pods", string(pod.UID), "precious")
				r.t.Cleanup(func() { _ = os.RemoveAll(at) })
				canary.Fill(r.t, at)
				return strings.Repeat("../", strings.Count(path, "/")) + "precious"
			},
		} {
			t.Run(path+" leads "+name, func(t *testing.T) {
				r := newRig(t)
				r.configMap("cm", map[string]string{"file": "1", "key": "1"})
				pod := podOf(configMapSource("cm"))
				r.mount(pod)
				r.configMap("cm", map[string]string{"file": "2"})
				at := filepath.Join(r.root, "pods", string(pod.UID), path)
				must(t, os.Rename(at, filepath.Join(r.root, "moved")), os.Symlink(target(r, pod), at))
				r.restart()
				ctx, cancel := contextOf(t)
				_, _ = r.MountVolumes(ctx, pod) // it may fail, or repair
				cancel()
				r.unmount(pod)
				if left := r.list("pods/" + string(pod.UID) + "/volumes"); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
			})
		}
	}
}

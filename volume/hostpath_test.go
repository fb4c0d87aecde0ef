package volume

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/volume/internal/canary"
)

func hostPathSource(path string, kind corev1.HostPathType) corev1.VolumeSource {
	return corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path, Type: &kind}}
}

func TestHostPath(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs unix")
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	socket, err := net.Listen("unix", at("socket"))
	must(t, err)
	defer socket.Close()
	must(t, os.Mkdir(at("dir"), 0o755), os.WriteFile(at("file"), nil, 0o644), os.Symlink("dir", at("link")))
	const failed = "hostPath type check failed: "
	for _, tc := range []struct {
		kind corev1.HostPathType
		path string
		want string // how the error ends; empty is none
	}{
		{corev1.HostPathUnset, at("dir"), ""},
		{corev1.HostPathUnset, at("missing"), ""},
		{corev1.HostPathDirectory, at("dir"), ""},
		{corev1.HostPathDirectory, at("link"), ""}, // the host's links are the host's own
		{corev1.HostPathDirectory, at("file"), failed + at("file") + " is not a directory, it's a File"},
		{corev1.HostPathDirectory, at("missing"), "hostPath " + at("missing") + " doesn't exist"},
		{corev1.HostPathDirectory, at("file/x"), "unable to determine its type: stat " + at("file/x") + ": not a directory"},
		{corev1.HostPathDirectoryOrCreate, at("dir"), ""},
		{corev1.HostPathDirectoryOrCreate, at("new/deep"), ""},
		{corev1.HostPathDirectoryOrCreate, at("file"), failed + at("file") + " is not a directory, it's a File"},
		{corev1.HostPathFile, at("file"), ""},
		{corev1.HostPathFile, at("socket"), failed + at("socket") + " is not a file, it's a Socket"},
		{corev1.HostPathFileOrCreate, at("file"), ""},
		{corev1.HostPathFileOrCreate, at("new-file"), ""},
		{corev1.HostPathFileOrCreate, at("dir"), failed + at("dir") + " is not a file, it's a Directory"},
		{corev1.HostPathSocket, at("socket"), ""},
		{corev1.HostPathSocket, at("file"), failed + at("file") + " is not a socket file, it's a File"},
		{corev1.HostPathCharDev, "/dev/null", ""},
		{corev1.HostPathBlockDev, "/dev/null", failed + "/dev/null is not a block device, it's a CharDevice"},
		{corev1.HostPathCharDev, at("dir"), failed + at("dir") + " is not a character device, it's a Directory"},
		{"Wormhole", at("dir"), "Wormhole is an invalid volume type"},
		{corev1.HostPathDirectory, at("dir") + "/../dir", `invalid HostPath "` + at("dir") + `/../dir": must not contain '..'`},
	} {
		pod := podOf(hostPathSource(tc.path, tc.kind))
		got, err := hostPath{}.SetUp(t.Context(), Mount{Pod: pod, Volume: &pod.Spec.Volumes[0]})
		switch {
		case tc.want == "" && (err != nil || got != podmill.Volume{HostPath: tc.path}):
			t.Errorf("%s as %q: %+v, %v", tc.path, tc.kind, got, err)
		case tc.want != "" && (err == nil || !strings.HasSuffix(err.Error(), tc.want)):
			t.Errorf("%s as %q: error %v, want %s", tc.path, tc.kind, err, tc.want)
		}
	}
	for name, want := range map[string]os.FileMode{"new/deep": 0o755 | os.ModeDir, "new-file": 0o644} {
		if info, err := os.Stat(at(name)); err != nil || info.Mode() != want {
			t.Errorf("%s was made with %v, %v, want %v", name, info.Mode(), err, want)
		}
	}
}

func TestHostPathOutlivesThePod(t *testing.T) {
	r := newRig(t)
	pod := podOf(hostPathSource(canary.Tree(t), corev1.HostPathDirectory))
	r.mount(pod)
	if left := r.list("pods"); len(left) > 0 {
		t.Errorf("on disk: %v", left)
	}
	r.unmount(pod)
}

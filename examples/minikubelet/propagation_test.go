package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/podmill/podmill/internal/testenv"
)

// propagation is a pod whose containers have a directory of the node in the three ways that there are.
func propagation(dir string) string {
	return `
apiVersion: v1
kind: Pod
metadata: {name: mounts}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - {name: none, image: "podmill.test/busybox:1", command: [sleep, "100000"], volumeMounts: [{name: dir, mountPath: /dir}]}
  - {name: down, image: "podmill.test/busybox:1", command: [sleep, "100000"], volumeMounts: [{name: dir, mountPath: /dir, mountPropagation: HostToContainer}]}
  - name: both
    image: podmill.test/busybox:1
    command: [sleep, "100000"]
    securityContext: {privileged: true}
    volumeMounts: [{name: dir, mountPath: /dir, mountPropagation: Bidirectional}]
  volumes: [{name: dir, hostPath: {path: ` + dir + `}}]
`
}

// What is mounted while containers run is seen where their pod asks for it: of the node's in those that ask for that, and on the node of one's own.
func TestMountPropagation(t *testing.T) {
	testenv.EachContainerd(t, func(t *testing.T, endpoint string) {
		n, dir := newNode(t, endpoint), t.TempDir()
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(unix.Mount(dir, dir, "", unix.MS_BIND, ""))
		t.Cleanup(func() { must(unix.Unmount(dir, unix.MNT_DETACH)) })
		must(unix.Mount("", dir, "", unix.MS_SHARED, ""))
		for _, name := range []string{"node", "own"} {
			must(os.Mkdir(filepath.Join(dir, name), 0o755))
		}
		n.write("mounts.yaml", propagation(dir))
		n.start()
		pod := n.reaches("mounts", "is ready", ready)

		must(unix.Mount("tmpfs", filepath.Join(dir, "node"), "tmpfs", 0, "size=64k"))
		must(os.WriteFile(filepath.Join(dir, "node/file"), nil, 0o600))
		n.sh("mounts", "both", "mount -t tmpfs -o size=64k own /dir/own && touch /dir/own/file")
		for container, want := range map[string]string{"none": "", "down": "/dir/node/file\n/dir/own/file", "both": "/dir/node/file\n/dir/own/file"} {
			if got := n.sh("mounts", container, "ls /dir/*/file 2>/dev/null || true"); got != want {
				t.Errorf("container %s sees %q, want %q", container, got, want)
			}
		}
		if _, err := os.Stat(filepath.Join(dir, "own/file")); err != nil {
			t.Errorf("on the node: %v", err)
		}
		must(unix.Unmount(filepath.Join(dir, "node"), 0))
		must(unix.Unmount(filepath.Join(dir, "own"), 0))
		n.remove("mounts.yaml")
		n.gone(pod)
	})
}

// The flags of each mount, and of what is mounted below it, are what its container asks for, and the status says so.
func TestMountFlagsFromInside(t *testing.T) {
	n, dir := newNode(t, testenv.Containerd(t)), t.TempDir()
	below := filepath.Join(dir, "below")
	if err := errors.Join(os.Mkdir(below, 0o755), unix.Mount("tmpfs", below, "tmpfs", 0, "size=64k")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(below, unix.MNT_DETACH) })
	n.write("flags.yaml", `
apiVersion: v1
kind: Pod
metadata: {name: flags}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: podmill.test/busybox:1
    command: [sleep, "100000"]
    volumeMounts:
    - {name: dir, mountPath: /writable}
    - {name: dir, mountPath: /top, readOnly: true}
    - {name: dir, mountPath: /all, readOnly: true, recursiveReadOnly: Enabled}
    - {name: dir, mountPath: /if-possible, readOnly: true, recursiveReadOnly: IfPossible}
    - {name: memory, mountPath: /memory}
    - {name: config, mountPath: /config}
  volumes:
  - {name: dir, hostPath: {path: `+dir+`}}
  - {name: memory, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
  - {name: config, configMap: {name: none, optional: true}}
`)
	n.start()
	pod := n.reaches("flags", "is ready", ready)
	for path, want := range map[string]string{
		"/writable": "rw", "/writable/below": "rw", "/top": "ro", "/top/below": "rw", "/all": "ro", "/all/below": "ro", "/if-possible": "ro", "/if-possible/below": "ro",
		"/memory": "rw", "/config": "ro",
	} {
		if got := n.sh("flags", "main", "awk '$5 == \""+path+"\" {split($6, f, \",\"); print f[1]}' /proc/self/mountinfo"); got != want {
			t.Errorf("%s is mounted %s, want %s", path, got, want)
		}
	}
	said := map[string]string{}
	for _, m := range pod.Status.ContainerStatuses[0].VolumeMounts {
		if m.RecursiveReadOnly != nil {
			said[m.MountPath] = string(*m.RecursiveReadOnly)
		}
	}
	if diff := cmp.Diff(map[string]string{"/top": "Disabled", "/all": "Enabled", "/if-possible": "Enabled"}, said); diff != "" {
		t.Errorf("the status says of what is read-only below (-want +got):\n%s", diff)
	}
	n.remove("flags.yaml")
	n.gone(pod)
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/internal/testenv"
)

const partsManifest = `
apiVersion: v1
kind: ConfigMap
metadata: {name: conf}
data: {key: old}
---
apiVersion: v1
kind: Pod
metadata: {name: parts}
spec:
  terminationGracePeriodSeconds: 0
  securityContext: {fsGroup: 2000}
  initContainers:
  - name: init
    image: podmill.test/busybox:1
    command: [sh, -c, 'ln -s /etc /all/outside; ln -s a /all/inside; mkdir /all/a; echo data > /all/a/file']
    volumeMounts: [{name: data, mountPath: /all}]
  containers:
  - name: main
    image: podmill.test/busybox:1
    command: [sh, -c, 'trap exit TERM; while :; do sleep 1 & wait $!; done']
    env: [{name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
    volumeMounts:
    - {name: data, mountPath: /part, subPath: inside, readOnly: true}
    - {name: data, mountPath: /mine, subPathExpr: of/$(POD)}
    - {name: conf, mountPath: /etc/key, subPath: key}
    - {name: host, mountPath: /host, subPath: x/y}
  - name: whole
    image: podmill.test/busybox:1
    command: [sh, -c, 'trap exit TERM; while :; do sleep 1 & wait $!; done']
    volumeMounts: [{name: data, mountPath: /all}]
  volumes:
  - {name: data, emptyDir: {}}
  - {name: conf, configMap: {name: conf}}
  - {name: host, hostPath: {path: HOST}}
`

// B040 and more: what containers see of the parts of volumes, when they run and when they are restarted, and that nothing of it stays.
func TestSubPathsOnContainerd(t *testing.T) {
	testenv.EachContainerd(t, func(t *testing.T, endpoint string) {
		n, host := newNode(t, endpoint), t.TempDir()
		manifest := strings.Replace(partsManifest, "HOST", host, 1)
		n.write("parts.yaml", manifest)
		n.start()
		pod := n.reaches("parts", "is ready", ready)
		for _, look := range [][2]string{
			{"cat /part/file", "data"}, {"touch /part/x 2>&1", "touch: /part/x: Read-only file system"}, {"ls /part", "file"}, {"cat /etc/key", "old"},
			{"stat -c '%a %g' /mine", "2777 2000"}, {"ls /mine", ""}, {"echo here > /host/note; echo mine > /mine/note", ""},
		} {
			script, want := look[0], look[1]
			if got := n.sh("parts", "main", script+" || true"); got != want {
				t.Errorf("%s: %q, want %q", script, got, want)
			}
		}
		if got := n.sh("parts", "whole", "cat /all/of/*/note"); got != "mine" {
			t.Errorf("the other container sees %q", got)
		}
		if data, err := os.ReadFile(filepath.Join(host, "x/y/note")); err != nil || string(data) != "here\n" {
			t.Errorf("on the host: %q, %v", data, err)
		}

		n.write("parts.yaml", strings.Replace(manifest, "key: old", "key: new", 1))
		n.eventually("the ConfigMap's volume has the new key", func() bool {
			data, _ := os.ReadFile(filepath.Join(n.root, "pods", string(pod.UID), "volumes/kubernetes.io~configmap/conf/key"))
			return string(data) == "new"
		})
		if got := n.sh("parts", "main", "cat /etc/key"); got != "old" {
			t.Errorf("a container that runs sees %q", got)
		}
		n.crash()
		n.start()
		n.kill(pod, "main")
		n.reaches("parts", "is restarted", func(pod *corev1.Pod) bool { return ready(pod) && pod.Status.ContainerStatuses[0].RestartCount == 1 })
		if got := n.sh("parts", "main", "cat /etc/key /mine/note /part/file /host/note"); got != "newmine\ndata\nhere" {
			t.Errorf("started anew it sees %q", got)
		}
		n.remove("parts.yaml")
		n.gone(pod)
		if _, err := os.Stat(filepath.Join(host, "x/y/note")); err != nil {
			t.Errorf("of what is the host's there is left: %v", err)
		}
	})
}

const outsideManifest = `
apiVersion: v1
kind: Pod
metadata: {name: outside}
spec:
  terminationGracePeriodSeconds: 0
  initContainers:
  - name: init
    image: podmill.test/busybox:1
    command: [ln, -s, /etc, /all/out]
    volumeMounts: [{name: data, mountPath: /all}]
  containers:
  - name: main
    image: podmill.test/busybox:1
    command: [sleep, "100000"]
    volumeMounts: [{name: data, mountPath: /etc-of-the-host, subPath: out}]
  volumes:
  - {name: data, emptyDir: {}}
`

// A link in a volume leads nowhere: the container waits, and says why.
func TestASubPathThatLeadsOutside(t *testing.T) {
	n := newNode(t, testenv.Containerd(t))
	n.write("outside.yaml", outsideManifest)
	n.start()
	pod := n.reaches("outside", "waits", waitsFor("CreateContainerConfigError"))
	if why := pod.Status.ContainerStatuses[0].State.Waiting.Message; !strings.Contains(why, `volumeMounts of volume "data": failed to prepare subPath`) ||
		!strings.Contains(why, "it leads out of the volume") {
		t.Errorf("it waits because of %q", why)
	}
	n.remove("outside.yaml")
	n.gone(pod)
}

func imageManifest(policy, image string) string {
	return `
apiVersion: v1
kind: Pod
metadata: {name: image}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: podmill.test/busybox:1
    command: [sleep, "100000"]
    volumeMounts: [{name: tools, mountPath: /tools}, {name: tools, mountPath: /tools-bin, subPath: bin}]
  volumes:
  - {name: tools, image: {reference: "` + image + `", pullPolicy: ` + policy + `}}
`
}

// KEP-4639: an image is pulled as a container's is, and mounted where the runtime can.
func TestImageVolumes(t *testing.T) {
	testenv.EachContainerd(t, func(t *testing.T, endpoint string) {
		n := newNode(t, endpoint)
		image := testenv.PlainRegistry(t).Push(t, "image-volume:"+n.name, 1000) // which was never pulled
		n.write("image.yaml", imageManifest("Never", image))
		n.start()
		n.reaches("image", "waits for its image", waitsFor("ErrImageNeverPull"))
		n.write("image.yaml", imageManifest("IfNotPresent", image))
		if endpoint == testenv.OldContainerd(t) {
			pod := n.reaches("image", "waits", waitsFor("CreateContainerConfigError"))
			if why := pod.Status.ContainerStatuses[0].State.Waiting.Message; !strings.Contains(why, "mount of an image at /tools: the runtime, containerd 1.6") {
				t.Errorf("it waits because of %q", why)
			}
			return
		}
		n.reaches("image", "is ready", ready)
		if got := n.sh("image", "main", "stat -c %s /tools/fresh; ls /tools-bin/sh; touch /tools/x 2>&1 || true"); got != "1000\n/tools-bin/sh\ntouch: /tools/x: Read-only file system" {
			t.Errorf("of the image it sees %q", got)
		}
		n.remove("image.yaml")
	})
}

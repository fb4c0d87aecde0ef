package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/internal/testenv"
)

// ownUsers is a pod with users of its own, and all kinds of files.
func ownUsers(name string) string {
	return `
apiVersion: v1
kind: Pod
metadata: {name: ` + name + `}
spec:
  hostUsers: false
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: podmill.test/busybox:1
    command: [sh, -c, 'echo x > /data/file; echo bye > /dev/termination-log; exec sleep 100000']
    volumeMounts: [{name: page, mountPath: /page}, {name: data, mountPath: /data}, {name: memory, mountPath: /memory}]
  volumes:
  - {name: page, configMap: {name: page}}
  - {name: data, emptyDir: {}}
  - {name: memory, emptyDir: {medium: Memory}}
`
}

// userMap is the first ID of the node that a pod's users are.
func (n *node) userMap(pod string) (first int) {
	n.Helper()
	var container, length int
	if _, err := fmt.Sscan(n.sh(pod, "main", "cat /proc/1/uid_map"), &container, &first, &length); err != nil || container != 0 || length != 65536 {
		n.Fatalf("the users of pod %s: %d %d %d, %v", pod, container, first, length, err)
	}
	return first
}

// TestUserNamespaces shows that root in a pod is nobody on the node and in every other pod, and yet has its files; that a pod's users are the same after a
// restart of the agent, and that they are free again when the pod is gone.
func TestUserNamespaces(t *testing.T) {
	n := newNode(t, testenv.Containerd(t))
	n.write("page.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: page}, data: {greeting: hello}}")
	n.write("one.yaml", ownUsers("one"))
	n.write("two.yaml", ownUsers("two"))
	n.start()
	one, two := n.reaches("one", "is ready", ready), n.reaches("two", "is ready", ready)
	first, second := n.userMap("one"), n.userMap("two")
	if first < 65536 || second < 65536 || first%65536 != 0 || second%65536 != 0 || first == second {
		t.Errorf("the pods' users begin at %d and %d", first, second)
	}
	n.eventually("the pod has written its files", func() bool { return n.sh("one", "main", "cat /data/file /dev/termination-log || true") == "x\nbye" })
	for _, want := range []struct{ script, out string }{
		{"id -u", "0"},
		{"stat -c %u:%g /data/file /page /page/greeting /memory /etc/hosts /dev/termination-log / /bin/sh | sort -u", "0:0"},
		{"cat /page/greeting /data/file", "hellox"},
		{"touch /memory/file && echo ok", "ok"},
	} {
		if got := n.sh("one", "main", want.script); got != want.out {
			t.Errorf("%s: %q, want %q", want.script, got, want.out)
		}
	}
	if uid := n.ownerOfProcess(one); uid != first {
		t.Errorf("on the node its process runs as %d, want %d", uid, first)
	}
	info, err := os.Stat(filepath.Join(n.root, "pods", string(one.UID), "volumes/kubernetes.io~empty-dir/data/file"))
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != 0 {
		t.Errorf("the file in its volume is %+v, %v", info, err)
	}

	before := n.seen(one.UID)
	n.crash()
	n.start()
	n.reaches("one", "is known again", ready)
	n.wantSame(before, n.seen(one.UID))
	n.kill(one, "main")
	n.reaches("one", "has restarted its container", func(pod *corev1.Pod) bool { return ready(pod) && pod.Status.ContainerStatuses[0].RestartCount == 1 })
	if now := n.userMap("one"); now != first {
		t.Errorf("after a restart its users begin at %d, before at %d", now, first)
	}

	n.remove("one.yaml")
	n.gone(one)
	n.write("three.yaml", ownUsers("three"))
	n.reaches("three", "is ready", ready)
	if third := n.userMap("three"); third != first || n.userMap("two") != second {
		t.Errorf("the next pod's users begin at %d, those of the pod that is gone began at %d", third, first)
	}
	n.remove("two.yaml")
	n.gone(two)
}

// ownerOfProcess is whose a container's first process is on the node.
func (n *node) ownerOfProcess(pod *corev1.Pod) int {
	n.Helper()
	info, err := os.Stat(fmt.Sprintf("/proc/%d", n.processes(pod, "main")[0]))
	if err != nil {
		n.Fatal(err)
	}
	return int(info.Sys().(*syscall.Stat_t).Uid)
}

// A runtime that cannot do it is not asked: it would run the pod as the node's root.
func TestUserNamespacesOfAnOldRuntime(t *testing.T) {
	n := newNode(t, testenv.OldContainerd(t))
	n.write("page.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: page}, data: {greeting: hello}}")
	n.write("one.yaml", ownUsers("one"))
	n.start()
	n.wantEvents("FailedCreatePodSandBox")
	said := false
	for _, e := range n.events() {
		said = said || e.Reason == "FailedCreatePodSandBox" && strings.Contains(e.Message, "hostUsers: false: the runtime, containerd 1.")
	}
	if !said {
		t.Errorf("events: %+v", n.events())
	}
	pod := n.reaches("one", "is known", func(*corev1.Pod) bool { return true })
	if seen := n.seen(pod.UID); !seen.Empty() {
		t.Errorf("the runtime holds %+v", seen)
	}
}

// A part of a volume belongs to the users of a pod as the volume does, and is no way out of it.
func TestPartsOfVolumesInAUserNamespace(t *testing.T) {
	n := newNode(t, testenv.Containerd(t))
	n.write("page.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: page}, data: {greeting: hello}}")
	n.write("parts.yaml", `
apiVersion: v1
kind: Pod
metadata: {name: parts}
spec:
  hostUsers: false
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: podmill.test/busybox:1
    command: [sleep, "100000"]
    volumeMounts:
    - {name: data, mountPath: /part, subPath: a/b}
    - {name: memory, mountPath: /memory-part, subPath: c}
    - {name: page, mountPath: /etc/page, subPath: greeting}
  volumes:
  - {name: page, configMap: {name: page}}
  - {name: data, emptyDir: {}}
  - {name: memory, emptyDir: {medium: Memory}}
`)
	n.start()
	pod := n.reaches("parts", "is ready", ready)
	for _, want := range []struct{ script, out string }{
		{"echo x > /part/file; echo y > /memory-part/file; stat -c %u:%g /part /part/file /memory-part/file /etc/page | sort -u", "0:0"},
		{"cat /part/file /memory-part/file /etc/page", "x\ny\nhello"},
	} {
		if got := n.sh("parts", "main", want.script); got != want.out {
			t.Errorf("%s: %q, want %q", want.script, got, want.out)
		}
	}
	if first := n.userMap("parts"); n.ownerOfProcess(pod) != first || first == 0 {
		t.Errorf("its users begin at %d, and its process runs as %d", first, n.ownerOfProcess(pod))
	}
	n.remove("parts.yaml")
	n.gone(pod)
}

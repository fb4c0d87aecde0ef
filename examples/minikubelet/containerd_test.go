package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/testenv"
)

const webManifest = `
apiVersion: v1
kind: ConfigMap
metadata: {name: page}
data: {greeting: hello, other: world}
---
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  terminationGracePeriodSeconds: 5
  initContainers:
  - name: init
    image: podmill.test/busybox:1
    command: [sh, -c, 'cat /page/greeting > /shared/from-init; echo init done']
    volumeMounts: [{name: page, mountPath: /page}, {name: shared, mountPath: /shared}]
  containers:
  - name: server
    image: podmill.test/busybox:1
    command: [sh, -c, 'echo started; trap exit TERM; while :; do sleep 1 & wait $!; done']
    volumeMounts: [{name: page, mountPath: /page}, {name: shared, mountPath: /shared}, {name: memory, mountPath: /memory}]
    resources: {requests: {cpu: 20m, memory: 16Mi}, limits: {memory: 64Mi}}
  - name: peer
    image: podmill.test/busybox:1
    command: [sh, -c, 'echo "to stderr" >&2; trap exit TERM; while :; do sleep 1 & wait $!; done']
    volumeMounts: [{name: shared, mountPath: /shared}]
  volumes:
  - {name: page, configMap: {name: page}}
  - {name: shared, emptyDir: {}}
  - {name: memory, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
`

// sleeper is a pod that runs until it is told to stop, which it ignores.
func sleeper(name, image, grace string) string {
	return `
apiVersion: v1
kind: Pod
metadata: {name: ` + name + `}
spec:
  terminationGracePeriodSeconds: ` + grace + `
  containers:
  - {name: main, image: "` + image + `", command: [sh, -c, "trap '' TERM; while :; do sleep 1; done"]}
`
}

// bystander runs through a whole test untouched.
const bystander = `
apiVersion: v1
kind: Pod
metadata: {name: bystander}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - {name: main, image: "podmill.test/busybox:1", command: [sleep, "100000"]}
`

// TestPodOnContainerd takes one pod through its life on both containerds, beside another that must not notice.
func TestPodOnContainerd(t *testing.T) {
	testenv.EachContainerd(t, func(t *testing.T, endpoint string) {
		n := newNode(t, endpoint)
		n.write("bystander.yaml", bystander)
		n.write("web.yaml", webManifest)
		n.start()
		other := n.seen(n.reaches("bystander", "is ready", ready).UID)
		pod := n.reaches("web", "is ready", ready)

		t.Run("files", func(t *testing.T) {
			for _, want := range []struct{ container, script, out string }{
				{"server", "cat /page/greeting /page/other /shared/from-init", "helloworldhello"},
				{"server", "grep ' /memory tmpfs' /proc/mounts | grep -o size=1024k", "size=1024k"},
				{"server", "echo x > /shared/note; echo ok", "ok"},
				{"peer", "cat /shared/note", "x"},
				{"server", "hostname", "web-" + nodeName},
			} {
				if got := n.sh("web", want.container, want.script); got != want.out {
					t.Errorf("%s in %s: %q, want %q", want.script, want.container, got, want.out)
				}
			}
		})
		t.Run("logs", func(t *testing.T) {
			dir := filepath.Join(n.root, "log", "pods", "default_web-"+nodeName+"_"+string(pod.UID))
			for file, text := range map[string]string{"init/0.log": "init done", "server/0.log": "started", "peer/0.log": "stderr F to stderr"} {
				data, err := os.ReadFile(filepath.Join(dir, file))
				if err != nil || !strings.Contains(string(data), text) {
					t.Errorf("%s: %q, %v", file, data, err)
				}
			}
			if links, _ := filepath.Glob(filepath.Join(n.root, "log", "containers", "web-"+nodeName+"_default_server-*.log")); len(links) != 1 {
				t.Errorf("links to the log: %v", links)
			}
			if out, err := n.ask("logs", "web", "peer"); err != nil || out != "to stderr\n" {
				t.Errorf("minikubelet logs: %q, %v", out, err)
			}
		})
		t.Run("cgroup", func(t *testing.T) {
			limit, err := os.ReadFile("/sys/fs/cgroup/cpu" + n.cgroupRoot + "/kubepods/burstable/pod" + string(pod.UID) + "/cpu.shares")
			if err != nil || strings.TrimSpace(string(limit)) != "20" {
				t.Errorf("the pod's CPU shares: %q, %v", limit, err)
			}
		})
		t.Run("restart after a kill", func(t *testing.T) {
			n.T = t
			n.sh("web", "server", "kill -9 1 || kill -9 $(pidof sh)") // its own init cannot be killed from inside
			_ = n.sh
		})
		n.T = t
		t.Run("removal", func(t *testing.T) {
			n.T = t
			n.remove("web.yaml")
			n.gone(pod)
		})
		n.T = t
		if now := n.seen(other.UID); now.Containers[0].ID != other.Containers[0].ID || now.Containers[0].State != podmill.StateRunning {
			t.Errorf("the other pod was touched: %+v", now.Containers)
		}
	})
}

var _ = corev1.PodRunning
var _ = time.Second

package main

import (
	"encoding/json"
	"fmt"
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

		n.files()
		n.logs(pod)
		n.cgroup(pod)
		n.restartsAfterAKill(pod)
		n.outlivesACrashOfTheAgent(pod)
		n.replacesASandbox(pod)
		n.replacesAnEditedPod(pod)

		if now := n.seen(other.UID); len(now.Containers) != 1 || now.Containers[0].ID != other.Containers[0].ID || now.Containers[0].State != podmill.StateRunning {
			t.Errorf("the other pod was touched: %+v", now.Containers)
		}
	})
}

// files checks what the containers see of their volumes and of each other.
func (n *node) files() {
	for _, want := range []struct{ container, script, out string }{
		{"server", "cat /page/greeting /page/other /shared/from-init", "helloworldhello"},
		{"server", "grep ' /memory tmpfs' /proc/mounts | grep -o size=1024k", "size=1024k"},
		{"server", "echo x > /shared/note; echo ok", "ok"},
		{"peer", "cat /shared/note", "x"},
		{"server", "hostname", "web-" + n.name},
	} {
		if got := n.sh("web", want.container, want.script); got != want.out {
			n.Errorf("%s in %s: %q, want %q", want.script, want.container, got, want.out)
		}
	}
}

// logs checks that logs lie where log shippers look for them.
func (n *node) logs(pod *corev1.Pod) {
	dir := filepath.Join(n.root, "log", "pods", "default_web-"+n.name+"_"+string(pod.UID))
	for file, text := range map[string]string{"init/0.log": "init done", "server/0.log": "started", "peer/0.log": "stderr F to stderr"} {
		n.eventually(file+" says "+text, func() bool {
			data, _ := os.ReadFile(filepath.Join(dir, file))
			return strings.Contains(string(data), text)
		})
	}
	links, _ := filepath.Glob(filepath.Join(n.root, "log", "containers", "web-"+n.name+"_default_server-*.log"))
	if len(links) != 1 {
		n.Fatalf("links to the log: %v", links)
	}
	if data, err := os.ReadFile(links[0]); err != nil || !strings.Contains(string(data), "started") {
		n.Errorf("behind the link: %q, %v", data, err)
	}
	if out, err := n.ask("logs", "web", "peer"); err != nil || out != "to stderr\n" {
		n.Errorf("minikubelet logs: %q, %v", out, err)
	}
}

// cgroup checks that the pod has what its requests give it, and that its containers are inside.
func (n *node) cgroup(pod *corev1.Pod) {
	shares, err := os.ReadFile("/sys/fs/cgroup/cpu" + n.podCgroup(pod) + "/cpu.shares")
	if err != nil || strings.TrimSpace(string(shares)) != "20" {
		n.Errorf("the pod's CPU shares: %q, %v", shares, err)
	}
	if len(n.processes(pod, "server")) == 0 {
		n.Error("no process of the container is in the pod's cgroup")
	}
}

func (n *node) restartsAfterAKill(pod *corev1.Pod) {
	n.kill(pod, "server")
	restarted := func(pod *corev1.Pod) bool { return ready(pod) && pod.Status.ContainerStatuses[0].RestartCount == 1 }
	now := n.reaches("web", "has restarted its container", restarted)
	if end := now.Status.ContainerStatuses[0].LastTerminationState.Terminated; end == nil || end.ExitCode != 137 {
		n.Errorf("the end of the killed container: %+v", end)
	}
	n.kill(pod, "server")
	n.reaches("web", "waits before it restarts again", waitsFor("CrashLoopBackOff"))
	n.reaches("web", "is ready again", ready)
}

// outlivesACrashOfTheAgent kills the agent: nothing of the pod may change, and a new agent goes on with what it was.
func (n *node) outlivesACrashOfTheAgent(pod *corev1.Pod) {
	before, told := n.seen(pod.UID), n.pod("web")
	n.crash()
	n.start()
	now := n.reaches("web", "is known again", ready)
	n.wantSame(before, n.seen(pod.UID))
	for i, s := range now.Status.ContainerStatuses {
		if old := told.Status.ContainerStatuses[i]; s.RestartCount != old.RestartCount || s.ContainerID != old.ContainerID {
			n.Errorf("container %s after the agent's crash: restarts %d, was %d", s.Name, s.RestartCount, old.RestartCount)
		}
	}
	if !now.Status.StartTime.Equal(told.Status.StartTime) {
		n.Errorf("start time %v, was %v", now.Status.StartTime, told.Status.StartTime)
	}
}

func (n *node) replacesASandbox(pod *corev1.Pod) {
	before := n.seen(pod.UID)
	if err := n.runtime.StopSandbox(n.Context(), before.Sandboxes[0].ID); err != nil {
		n.Fatal(err)
	}
	n.reaches("web", "has a new sandbox", func(now *corev1.Pod) bool {
		return ready(now) && now.Status.PodIP != "" && n.seen(pod.UID).Sandboxes[0].Attempt > before.Sandboxes[0].Attempt
	})
}

// replacesAnEditedPod edits a pod that does not want to stop: the new one waits until it is gone.
func (n *node) replacesAnEditedPod(pod *corev1.Pod) {
	n.write("web.yaml", sleeper("web", "podmill.test/busybox:2", "1"))
	edited := n.reaches("web", "is another one", func(now *corev1.Pod) bool { return now.UID != pod.UID && ready(now) })
	n.gone(pod)
	n.write("web.yaml", sleeper("web", "podmill.test/busybox:1", "4"))
	var oldEnd, newStart time.Time
	last := n.reaches("web", "is a third one", func(now *corev1.Pod) bool { return now.UID != edited.UID && ready(now) })
	n.gone(edited)
	for _, e := range n.events() {
		switch {
		case e.InvolvedObject.UID == edited.UID && e.Reason == "Killing":
			oldEnd = e.LastTimestamp.Time
		case e.InvolvedObject.UID == last.UID && e.Reason == "Started":
			newStart = e.LastTimestamp.Time
		}
	}
	if oldEnd.IsZero() || newStart.Before(oldEnd) {
		n.Errorf("the new pod started at %v, the old one was told to stop at %v", newStart, oldEnd)
	}
	n.remove("web.yaml")
	n.gone(last)
}

// TestManifestRemovedWhileTheAgentWasDown stops the pod with its own grace period, of which only the runtime still knows.
func TestManifestRemovedWhileTheAgentWasDown(t *testing.T) {
	n := newNode(t, testenv.Containerd(t))
	n.write("stubborn.yaml", sleeper("stubborn", "podmill.test/busybox:1", "6"))
	n.start()
	pod := n.reaches("stubborn", "is ready", ready)
	n.crash()
	n.remove("stubborn.yaml")
	begin := time.Now()
	n.start()
	n.gone(pod)
	if took := time.Since(begin); took < 5*time.Second {
		t.Errorf("it was killed after %v of its 6 s", took)
	}
}

func TestOutOfMemory(t *testing.T) {
	n := newNode(t, testenv.Containerd(t))
	n.write("greedy.yaml", `
apiVersion: v1
kind: Pod
metadata: {name: greedy}
spec:
  restartPolicy: Never
  containers:
  - name: main
    image: podmill.test/busybox:1
    command: [sh, -c, 'tail /dev/zero']
    resources: {limits: {memory: 16Mi}}
`)
	n.start()
	pod := n.reaches("greedy", "has failed", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed })
	if end := pod.Status.ContainerStatuses[0].State.Terminated; end == nil || end.Reason != "OOMKilled" || end.ExitCode != 137 {
		t.Errorf("the end: %+v", end)
	}
}

func TestAnImageThatCannotBePulledYet(t *testing.T) {
	n := newNode(t, testenv.Containerd(t))
	registry := testenv.PlainRegistry(t)
	name := fmt.Sprintf("late-%d:1", os.Getpid())
	n.write("late.yaml", sleeper("late", registry.Addr+"/"+name, "0"))
	n.start()
	n.reaches("late", "cannot pull", waitsFor("ErrImagePull"))
	n.reaches("late", "waits before it pulls again", waitsFor("ImagePullBackOff"))
	registry.Push(t, name, 1000)
	n.reaches("late", "is ready", ready)
	n.wantEvents("Pulling", "Failed", "BackOff", "Pulled", "Created", "Started")
}

func TestPrivateImage(t *testing.T) {
	n := newNode(t, testenv.Containerd(t))
	registry := testenv.AuthRegistry(t)
	image := registry.Push(t, fmt.Sprintf("private-%d:1", os.Getpid()), 1000)
	login, err := json.Marshal(map[string]any{"auths": map[string]any{registry.Addr: map[string]string{"username": registry.User, "password": registry.Password}}})
	if err != nil {
		t.Fatal(err)
	}
	pod := strings.Replace(sleeper("private", image, "0"), "spec:", "spec:\n  imagePullSecrets: [{name: login}]", 1)
	n.write("private.yaml", pod)
	n.start()
	n.reaches("private", "is refused", waitsFor("ErrImagePull"))
	n.write("login.yaml", `
apiVersion: v1
kind: Secret
metadata: {name: login}
type: kubernetes.io/dockerconfigjson
stringData: {".dockerconfigjson": '`+string(login)+`'}
`)
	n.reaches("private", "is ready", ready)
	n.stop() // its output is whole
	if strings.Contains(n.output.String(), registry.Password) {
		t.Error("the password is in the log")
	}
}

// TestRestartOfContainerd stops the daemon under a running agent: the containers run on, and afterwards the pods can be changed again.
func TestRestartOfContainerd(t *testing.T) {
	daemon := testenv.OwnContainerd(t)
	n := newNode(t, daemon.Endpoint)
	n.write("bystander.yaml", bystander)
	n.start()
	pod := n.reaches("bystander", "is ready", ready)
	before := n.seen(pod.UID)
	daemon.Halt(t)
	n.write("second.yaml", sleeper("second", "podmill.test/busybox:1", "0"))
	daemon.Start(t)
	second := n.reaches("second", "is ready", ready)
	n.wantSame(before, n.seen(pod.UID))
	n.remove("second.yaml")
	n.gone(second)
}

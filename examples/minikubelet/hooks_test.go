package main

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/internal/testenv"
)

// hooked is a pod of one container with hooks, in flow style, which writes its diary in a directory of the host.
func hooked(dir, grace, lifecycle string) string {
	return `
apiVersion: v1
kind: Pod
metadata: {name: hooked}
spec:
  terminationGracePeriodSeconds: ` + grace + `
  volumes: [{name: diary, hostPath: {path: ` + dir + `}}]
  containers:
  - name: main
    image: podmill.test/busybox:1
    command: [sh, -c, '` + serves + `']
    volumeMounts: [{name: diary, mountPath: /diary}]
    ports: [{name: web, containerPort: 8080}]
    lifecycle: ` + lifecycle + `
`
}

const serves = `mkdir -p /www; echo hi > /www/index.html; httpd -p 8080 -h /www; echo started >> /diary/all; trap "echo stopped >> /diary/all; exit" TERM; while :; do sleep 0.1 & wait $!; done`

// Each kind of hook, and each preStop within its grace.
func TestHooksOnContainerd(t *testing.T) {
	for _, tt := range []struct {
		name, lifecycle, grace string
		want                   []string
		least                  time.Duration // from the removal to the end
	}{
		{"exec", `{postStart: {exec: {command: [sh, -c, "sleep 0.5; echo postStart >> /diary/all"]}}, preStop: {exec: {command: [sh, -c, "echo preStop >> /diary/all"]}}}`,
			"60", []string{"started", "postStart", "preStop", "stopped"}, 0},
		{"httpGet and sleep", `{postStart: {sleep: {seconds: 1}}, preStop: {httpGet: {port: web, path: /}}}`, "60", []string{"started", "stopped"}, 0},
		{"sleep", `{preStop: {sleep: {seconds: 2}}}`, "60", []string{"started", "stopped"}, 2 * time.Second},
		{"cut by the grace", `{preStop: {exec: {command: [sh, -c, "echo preStop >> /diary/all; sleep 1000"]}}}`, "8",
			[]string{"started", "preStop", "stopped"}, 8 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n, dir := newNode(t, testenv.Containerd(t)), t.TempDir()
			n.write("pod.yaml", hooked(dir, tt.grace, tt.lifecycle))
			n.start()
			pod := n.reaches("hooked", "is ready", ready)
			removed := time.Now()
			n.remove("pod.yaml")
			n.gone(pod)
			if took := time.Since(removed); took < tt.least || took > 45*time.Second {
				t.Errorf("the end took %v", took)
			}
			n.wantDiary(dir, tt.want...)
		})
	}
}

// An agent that is killed during a postStart hook leaves no container behind that counts as started without it.
func TestKilledDuringPostStart(t *testing.T) {
	t.Parallel()
	n, dir := newNode(t, testenv.Containerd(t)), t.TempDir()
	n.write("pod.yaml", hooked(dir, "5", `{postStart: {exec: {command: [sh, -c, "sleep 10; echo postStart >> /diary/all"]}}}`))
	n.start()
	n.wantDiary(dir, "started")
	pod := n.reaches("hooked", "is told of", func(pod *corev1.Pod) bool { return len(pod.Status.ContainerStatuses) > 0 })
	if pod.Status.ContainerStatuses[0].State.Running != nil || ready(pod) {
		t.Errorf("during the hook: %+v", pod.Status.ContainerStatuses)
	}
	n.crash()
	n.start()
	n.reaches("hooked", "is ready after a restart", func(pod *corev1.Pod) bool {
		return ready(pod) && pod.Status.ContainerStatuses[0].RestartCount == 1
	})
}

// An agent that is killed during a preStop hook has it run again by the next one, in what is left of the grace.
func TestKilledDuringPreStop(t *testing.T) {
	t.Parallel()
	n, dir := newNode(t, testenv.Containerd(t)), t.TempDir()
	n.write("pod.yaml", hooked(dir, "15", `{preStop: {exec: {command: [sh, -c, "echo preStop >> /diary/all; sleep 1000"]}}}`))
	n.start()
	pod := n.reaches("hooked", "is ready", ready)
	removed := time.Now()
	n.remove("pod.yaml")
	n.wantDiary(dir, "started", "preStop")
	n.crash()
	n.start()
	n.gone(pod)
	if took := time.Since(removed); took < 15*time.Second || took > 60*time.Second {
		t.Errorf("the end took %v", took)
	}
	n.wantDiary(dir, "started", "preStop", "preStop", "stopped")
}

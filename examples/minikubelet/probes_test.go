package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/internal/testenv"
)

// TestProbes has one pod probed in every way, by servers in its containers.
func TestProbes(t *testing.T) {
	t.Parallel()
	n, state, bin := newNode(t, testenv.Containerd(t)), t.TempDir(), t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./testdata/probed")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	var containers strings.Builder
	for name, c := range map[string]struct{ args, port, probes string }{
		"web": {"-http=:8080", "ports: [{name: web, containerPort: 8080}]", `
    startupProbe: {periodSeconds: 1, failureThreshold: 100, exec: {command: [test, -e, /state/started]}}
    readinessProbe: {periodSeconds: 1, failureThreshold: 1, httpGet: {path: /ready, port: web}}
    livenessProbe: {periodSeconds: 1, failureThreshold: 2, httpGet: {path: /alive, port: 8080}}`},
		"socket": {"-tcp=:8081", "", `
    readinessProbe: {periodSeconds: 1, tcpSocket: {port: 8081}}`},
		"rpc": {"-grpc=:8082", "", `
    readinessProbe: {periodSeconds: 1, failureThreshold: 1, grpc: {port: 8082, service: ready}}`},
	} {
		fmt.Fprintf(&containers, `
  - name: %s
    image: podmill.test/busybox:1
    command: [/bin/probed/probed, %s]
    volumeMounts: [{name: bin, mountPath: /bin/probed, readOnly: true}, {name: state, mountPath: /state}]
    %s%s
`, name, c.args, c.port, c.probes)
	}
	n.write("probed.yaml", `
apiVersion: v1
kind: Pod
metadata: {name: probed}
spec:
  terminationGracePeriodSeconds: 1
  volumes: [{name: bin, hostPath: {path: `+bin+`}}, {name: state, hostPath: {path: `+state+`}}]
  containers:`+containers.String())
	n.start()

	mark := func(file string) {
		if err := os.WriteFile(filepath.Join(state, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	unmark := func(file string) {
		if err := os.Remove(filepath.Join(state, file)); err != nil {
			t.Fatal(err)
		}
	}
	is := func(name string, holds func(*corev1.ContainerStatus) bool) func(*corev1.Pod) bool {
		return func(pod *corev1.Pod) bool {
			for i := range pod.Status.ContainerStatuses {
				if s := &pod.Status.ContainerStatuses[i]; s.Name == name {
					return holds(s)
				}
			}
			return false
		}
	}
	isReady := func(s *corev1.ContainerStatus) bool { return s.Ready }
	isUnready := func(s *corev1.ContainerStatus) bool { return s.State.Running != nil && *s.Started && !s.Ready }

	n.reaches("probed", "has a ready socket", is("socket", isReady))
	n.reaches("probed", "has a ready rpc", is("rpc", isReady))
	n.reaches("probed", "waits for web to have started", is("web", func(s *corev1.ContainerStatus) bool {
		return s.State.Running != nil && !*s.Started && !s.Ready
	}))
	mark("started")
	n.reaches("probed", "is ready", ready)
	mark("unready")
	n.reaches("probed", "has an unready web", is("web", isUnready))
	n.reaches("probed", "has an unready rpc", is("rpc", isUnready))
	unmark("unready")
	before := n.reaches("probed", "is ready again", ready)

	running := n.seen(before.UID)
	n.crash()
	n.start()
	if pod := n.reaches("probed", "is known to the next agent", func(*corev1.Pod) bool { return true }); !ready(pod) {
		t.Errorf("the restart of the agent made it unready: %+v", pod.Status)
	}
	n.wantSame(running, n.seen(before.UID))

	mark("dead")
	n.reaches("probed", "has a restarted web", is("web", func(s *corev1.ContainerStatus) bool { return s.RestartCount > 0 }))
	unmark("dead")
	n.reaches("probed", "has recovered", ready)
	n.wantEvents("Unhealthy", "Killing")
}

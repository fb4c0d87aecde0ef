package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/internal/testenv"
)

// diary is a pod whose containers write down what happens to them, in a directory of the host. A container is given as name and script; in
// the script, say writes a line and serve runs until it is told to stop, and says so.
func diary(name, policy, dir string, inits, apps []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  restartPolicy: %s
  terminationGracePeriodSeconds: 10
  volumes: [{name: diary, hostPath: {path: %s}}]
`, name, policy, dir)
	for kind, list := range map[string][]string{"initContainers": inits, "containers": apps} {
		if len(list) > 0 {
			fmt.Fprintf(&b, "  %s:\n", kind)
		}
		for _, c := range list {
			name, script, _ := strings.Cut(c, ": ")
			name, sidecar := strings.CutSuffix(name, " sidecar")
			script = `say() { echo "$*" >> /diary/all; }; serve() { trap "say ` + name + ` stopped; exit" TERM; say ` + name + ` serves; while :; do sleep 0.1 & wait $!; done; }; ` + script
			fmt.Fprintf(&b, "  - name: %s\n    image: podmill.test/busybox:1\n    command: [sh, -c, '%s']\n    volumeMounts: [{name: diary, mountPath: /diary}]\n", name, script)
			if sidecar {
				b.WriteString("    restartPolicy: Always\n")
			}
		}
	}
	return b.String()
}

// wantDiary waits until the containers have written down that, in that order.
func (n *node) wantDiary(dir string, want ...string) {
	n.Helper()
	var got []byte
	defer func() {
		if n.Failed() {
			n.Logf("the diary says:\n%s", got)
		}
	}()
	n.eventually("the diary says "+strings.Join(want, ", "), func() bool {
		got, _ = os.ReadFile(filepath.Join(dir, "all"))
		return string(got) == strings.Join(want, "\n")+"\n"
	})
}

// Sidecars start in their order between the init containers and are stopped last, in the reverse order (KEP-753).
func TestSidecarsStartFirstAndStopLast(t *testing.T) {
	t.Parallel()
	n, dir := newNode(t, testenv.Containerd(t)), t.TempDir()
	n.write("pod.yaml", diary("order", "Always", dir,
		[]string{"first: say first done", "one sidecar: serve", "second: sleep 0.5; say second done", "two sidecar: serve"},
		[]string{"main: sleep 0.5; serve"}))
	n.start()
	pod := n.reaches("order", "is ready", ready)
	n.wantDiary(dir, "first done", "one serves", "second done", "two serves", "main serves")
	n.remove("pod.yaml")
	n.gone(pod)
	n.wantDiary(dir, "first done", "one serves", "second done", "two serves", "main serves", "main stopped", "two stopped", "one stopped")
}

// A sidecar keeps no pod from completing and decides nothing about how it ends: not with the code that it stops with either.
func TestAJobWithASidecarSucceeds(t *testing.T) {
	t.Parallel()
	n, dir := newNode(t, testenv.Containerd(t)), t.TempDir()
	n.write("pod.yaml", diary("job", "OnFailure", dir,
		[]string{`proxy sidecar: trap "say proxy stopped; exit 3" TERM; say proxy serves; while :; do sleep 0.1 & wait $!; done`},
		[]string{"work: if [ -e /diary/tried ]; then say work done; else say work failed; touch /diary/tried; exit 1; fi"}))
	n.start()
	pod := n.reaches("job", "has succeeded", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodSucceeded })
	n.wantDiary(dir, "proxy serves", "work failed", "work done", "proxy stopped")
	if end := pod.Status.ContainerStatuses[0]; end.RestartCount != 1 || end.State.Terminated == nil || end.State.Terminated.Reason != "Completed" {
		t.Errorf("work ended with %+v", end)
	}
	if end := pod.Status.InitContainerStatuses[0].State.Terminated; end == nil || end.ExitCode != 3 {
		t.Errorf("the sidecar ended with %+v", end)
	}
}

// KEP-4960: a container is told to stop with the signal that it asks for, and its status says which that is.
func TestStopSignal(t *testing.T) {
	t.Parallel()
	n, dir := newNode(t, testenv.Containerd(t)), t.TempDir()
	manifest := diary("signal", "Always", dir, nil, []string{`main: trap "say stopped by USR1; exit" USR1; trap "say stopped by TERM; exit" TERM; say serves; while :; do sleep 0.1 & wait $!; done`})
	n.write("pod.yaml", manifest+"    lifecycle: {stopSignal: SIGUSR1}\n  os: {name: linux}\n")
	n.start()
	pod := n.reaches("signal", "is ready", ready)
	n.wantDiary(dir, "serves")
	if s := pod.Status.ContainerStatuses[0].StopSignal; s == nil || *s != "SIGUSR1" {
		t.Errorf("the status says %v", s)
	}
	n.remove("pod.yaml")
	n.gone(pod)
	n.wantDiary(dir, "serves", "stopped by USR1")
}

// What follows a sidecar starts when its startup probe has succeeded (KEP-753).
func TestAStartupProbeGatesWhatFollows(t *testing.T) {
	t.Parallel()
	n, dir := newNode(t, testenv.Containerd(t)), t.TempDir()
	manifest := diary("gate", "Always", dir, []string{"proxy sidecar: serve"}, []string{"main: serve"})
	probe := "    restartPolicy: Always\n    startupProbe: {periodSeconds: 1, failureThreshold: 60, exec: {command: [test, -e, /diary/open]}}\n"
	n.write("pod.yaml", strings.Replace(manifest, "    restartPolicy: Always\n", probe, 1))
	n.start()
	n.reaches("gate", "has a proxy that runs and has not started", func(pod *corev1.Pod) bool {
		s := pod.Status.InitContainerStatuses
		return len(s) == 1 && s[0].State.Running != nil && !*s[0].Started
	})
	n.wantDiary(dir, "proxy serves")
	if err := os.WriteFile(filepath.Join(dir, "open"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	n.reaches("gate", "is ready", ready)
	n.wantDiary(dir, "proxy serves", "main serves")
}

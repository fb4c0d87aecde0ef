package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/internal/testenv"
)

// counted is a pod whose containers write down each start in a directory of the host.
func counted(image, dir string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: counted}
spec:
  terminationGracePeriodSeconds: 30
  initContainers:
  - name: init
    image: %[1]s
    imagePullPolicy: Always
    command: [sh, -c, 'echo started >> /count/init; sleep 0.5']
    volumeMounts: [{name: count, mountPath: /count}]
  containers:
  - name: main
    image: %[1]s
    command: [sh, -c, 'trap "echo told to stop >> /count/main; exit" TERM; echo started >> /count/main; while :; do sleep 1 & wait $!; done']
    volumeMounts: [{name: count, mountPath: /count}]
  volumes:
  - {name: count, hostPath: {path: %[2]s}}
`, image, dir)
}

// TestKilledInTheMiddle kills the agent in the middle of a call of each kind: before the runtime has heard of it, and when it has done what was asked and
// the answer is lost. The next agent goes on where things are: nothing is started twice, nothing is lost, one sandbox lives.
func TestKilledInTheMiddle(t *testing.T) {
	registry := testenv.PlainRegistry(t)
	image := registry.Push(t, fmt.Sprintf("counted-%d:1", os.Getpid()), 1000)
	for _, lost := range []bool{false, true} {
		for _, method := range []string{"PullImage", "RunPodSandbox", "CreateContainer", "StartContainer"} {
			t.Run(fmt.Sprintf("%s/lost=%v", method, lost), func(t *testing.T) {
				t.Parallel()
				n, dir := newInterrupted(t, image, method, lost)
				n.interrupt(func() {})
				n.isStartedOnce(dir)
			})
		}
		for _, method := range []string{"StopContainer", "StopPodSandbox", "RemovePodSandbox"} {
			t.Run(fmt.Sprintf("%s/lost=%v", method, lost), func(t *testing.T) {
				t.Parallel()
				n, dir := newInterrupted(t, image, method, lost)
				var pod *corev1.Pod
				n.interrupt(func() {
					pod = n.reaches("counted", "is ready", ready)
					n.hasStarted(dir)
					n.remove("counted.yaml")
				})
				n.gone(pod)
				n.wantCount(dir, "started\n", "started\ntold to stop\n")
			})
		}
	}
}

// An agent that is killed while an init container runs finds it again: it runs once, and what follows starts when it has succeeded.
func TestKilledDuringInit(t *testing.T) {
	t.Parallel()
	n, dir := newNode(t, testenv.Containerd(t)), t.TempDir()
	n.write("pod.yaml", diary("init", "Never", dir, []string{"first: say first begins; sleep 3; say first ends", "second: say second"}, []string{"main: serve"}))
	n.start()
	n.wantDiary(dir, "first begins")
	n.crash()
	n.start()
	pod := n.reaches("init", "is ready", ready)
	n.wantDiary(dir, "first begins", "first ends", "second", "main serves")
	for _, c := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		if c.RestartCount != 0 {
			t.Errorf("%s was restarted %d times", c.Name, c.RestartCount)
		}
	}
}

// interrupted is a node whose agent reaches the runtime through a proxy at first.
type interrupted struct {
	*node
	proxy *proxy
}

func newInterrupted(t *testing.T, image, method string, lost bool) (n interrupted, dir string) {
	t.Helper()
	n.node, dir = newNode(t, testenv.Containerd(t)), t.TempDir()
	n.proxy = newProxy(t, n.endpoint, method, lost)
	n.write("counted.yaml", counted(image, dir))
	return n, dir
}

// interrupt starts an agent, does what has to be done for the call to be made, kills the agent during the call, and starts another.
func (n interrupted) interrupt(cause func()) {
	n.Helper()
	runtime := n.endpoint
	n.endpoint = n.proxy.endpoint
	n.start()
	cause()
	select {
	case <-n.proxy.reached:
	case <-time.After(time.Minute):
		n.Fatalf("%s was never called", n.proxy.method)
	}
	n.crash()
	n.endpoint = runtime
	n.start()
}

// isStartedOnce waits for the pod, and fails unless it has what it needs and no more.
func (n interrupted) isStartedOnce(dir string) {
	n.Helper()
	pod := n.reaches("counted", "is ready", ready)
	seen := n.seen(pod.UID)
	live := 0
	for _, s := range seen.Sandboxes {
		if s.Ready {
			live++
		}
	}
	if live != 1 || len(seen.Containers) != 2 {
		n.Errorf("%d live sandboxes and %d containers: %+v", live, len(seen.Containers), seen)
	}
	n.hasStarted(dir)
	n.wantCount(dir, "started\n", "started\n")
}

// hasStarted waits until the main container has said that it has: a process may run for a while before it does something.
func (n interrupted) hasStarted(dir string) {
	n.Helper()
	n.eventually("main has started", func() bool {
		data, _ := os.ReadFile(filepath.Join(dir, "main"))
		return len(data) > 0
	})
}

// wantCount fails unless the containers have written down this.
func (n interrupted) wantCount(dir, initially, mainly string) {
	n.Helper()
	for file, want := range map[string]string{"init": initially, "main": mainly} {
		if got, err := os.ReadFile(filepath.Join(dir, file)); string(got) != want {
			n.Errorf("%s has written %q, want %q (%v)", file, got, want, err)
		}
	}
}

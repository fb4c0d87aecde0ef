package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/internal/testenv"
	"github.com/podmill/podmill/internal/testenv/testapi"
)

// story is a clusterkubelet in a whole cluster, and a person with a kubectl.
type story struct {
	*cluster
	program string
}

func newStory(t *testing.T) *story {
	t.Helper()
	testenv.Root(t)
	testenv.Containerd(t)
	plane, kubectl := testenv.Cluster(t)
	s := &story{cluster: newNode(t, testapi.In(t, plane)), program: kubectl}
	s.start()
	s.Eventually("the node is ready, and a controller says so", func() bool {
		node := &corev1.Node{}
		return s.nodeReady() && s.Get("nodes", s.Node, node) && len(node.Spec.Taints) == 0
	})
	return s
}

// kubectl is a command in the story's namespace.
func (s *story) kubectl(args ...string) *exec.Cmd {
	return exec.CommandContext(s.t.Context(), s.program, append([]string{"--kubeconfig", s.Plane.Kubeconfig, "--namespace", s.Namespace}, args...)...)
}

// does runs a command that has to succeed, and returns its output.
func (s *story) does(args ...string) string {
	s.t.Helper()
	out, err := s.kubectl(args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// applies creates what a manifest says. $NODE in it is the node.
func (s *story) applies(manifest string) {
	s.t.Helper()
	command := s.kubectl("apply", "-f", "-")
	command.Stdin = strings.NewReader(strings.ReplaceAll(manifest, "$NODE", s.Node))
	if out, err := command.CombinedOutput(); err != nil {
		s.t.Fatalf("kubectl apply: %v\n%s", err, out)
	}
}

func (s *story) pods() []corev1.Pod {
	s.t.Helper()
	list := &corev1.PodList{}
	s.List("pods", list)
	return list.Items
}

const selector = "nodeSelector: {kubernetes.io/hostname: $NODE}"

// A Deployment comes up, grows to 10, rolls over to another image, and goes away.
func TestStoryDeployment(t *testing.T) {
	s := newStory(t)
	s.applies(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      ` + selector + `
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: "podmill.test/busybox:1", command: [sleep, "100000"], readinessProbe: {exec: {command: ["true"]}, timeoutSeconds: 30}}]
`)
	s.does("rollout", "status", "deployment/web", "--timeout", "180s")
	s.does("scale", "deployment/web", "--replicas", "10")
	s.does("rollout", "status", "deployment/web", "--timeout", "180s")
	if pods := s.pods(); len(pods) != 10 || slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return !ready(&pod) || pod.Spec.NodeName != s.Node }) {
		t.Errorf("%d pods, want 10 that are ready on the node:\n%s", len(pods), s.does("get", "pods", "-o", "wide"))
	}
	s.does("set", "image", "deployment/web", "main=podmill.test/busybox:2")
	s.does("rollout", "status", "deployment/web", "--timeout", "180s")
	s.Eventually("the old pods are gone", func() bool { return len(s.pods()) == 10 && len(s.own()) == 10 })
	for _, pod := range s.pods() {
		if pod.Spec.Containers[0].Image != "podmill.test/busybox:2" || pod.Status.ContainerStatuses[0].RestartCount != 0 {
			t.Errorf("pod %s is %+v", pod.Name, pod.Status.ContainerStatuses)
		}
	}
	s.does("delete", "deployment", "web", "--cascade=foreground", "--timeout", "180s")
	s.Eventually("nothing is left", func() bool { return len(s.pods()) == 0 && len(s.own()) == 0 })
}

// A Job is complete when its work is done, although a sidecar would run for ever.
func TestStoryJobWithASidecar(t *testing.T) {
	s := newStory(t)
	s.applies(`
apiVersion: batch/v1
kind: Job
metadata: {name: work}
spec:
  completions: 2
  template:
    spec:
      ` + selector + `
      restartPolicy: Never
      terminationGracePeriodSeconds: 5
      initContainers: [{name: beside, image: "podmill.test/busybox:1", restartPolicy: Always, command: [sh, -c, "trap 'exit 0' TERM; sleep 100000 & wait"]}]
      containers: [{name: main, image: "podmill.test/busybox:1", command: [sh, -c, "sleep 1; echo done"]}]
`)
	s.does("wait", "--for", "condition=complete", "job/work", "--timeout", "180s")
	pods := s.pods()
	if len(pods) != 2 {
		t.Errorf("%d pods, want 2:\n%s", len(pods), s.does("get", "pods"))
	}
	for _, pod := range pods {
		if ended := pod.Status.InitContainerStatuses[0].State.Terminated; pod.Status.Phase != corev1.PodSucceeded || ended == nil || ended.ExitCode != 0 {
			t.Errorf("pod %s is %s, and its sidecar %+v", pod.Name, pod.Status.Phase, pod.Status.InitContainerStatuses[0].State)
		}
	}
	if out := s.does("logs", "job/work", "-c", "main"); !strings.HasSuffix(out, "done\n") {
		t.Errorf("the log is %q", out)
	}
}

const talker = `
apiVersion: v1
kind: Pod
metadata: {name: talker}
spec:
  ` + selector + `
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: "podmill.test/busybox:1", command: [sh, -c, "echo begin; while [ ! -e /end ]; do sleep 0.1; done; echo end; exit 1"]}]
`

// What a container says is followed until it ends, and read after it; a command in it has an input and an exit code.
func TestStoryLogsAndCommands(t *testing.T) {
	s := newStory(t)
	s.applies(talker)
	s.does("wait", "--for", "condition=ready", "pod/talker", "--timeout", "180s")
	follow := s.kubectl("logs", "-f", "talker")
	out, err := follow.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); line != "begin\n" {
		t.Errorf("the first line is %q, %v", line, err)
	}
	s.does("exec", "talker", "--", "touch", "/end")
	if rest, err := io.ReadAll(lines); err != nil || string(rest) != "end\n" {
		t.Errorf("the rest is %q, %v", rest, err)
	}
	if err := follow.Wait(); err != nil {
		t.Errorf("kubectl logs -f: %v", err)
	}
	s.reaches("talker", "runs again", func(pod *corev1.Pod) bool { return pod.Status.ContainerStatuses[0].RestartCount == 1 && ready(pod) })
	if text := s.does("logs", "talker", "--previous"); text != "begin\nend\n" {
		t.Errorf("the log before is %q", text)
	}
	if text := s.does("logs", "talker"); text != "begin\n" {
		t.Errorf("the log is %q", text)
	}

	command := s.kubectl("exec", "-i", "talker", "--", "sh", "-c", "cat; exit 3")
	command.Stdin = strings.NewReader("hello\n")
	var text bytes.Buffer
	command.Stdout = &text
	var exit *exec.ExitError
	if err := command.Run(); !errors.As(err, &exit) || exit.ExitCode() != 3 || text.String() != "hello\n" {
		t.Errorf("a command that ends with 3: %v, %q", err, &text)
	}
}

// A pod has the time to end that it is given, and no more; by force the API forgets it at once, and the node soon.
func TestStoryDelete(t *testing.T) {
	s := newStory(t)
	for name, script := range map[string]string{"polite": "trap 'sleep 2; exit 0' TERM; sleep 100000 & wait", "stubborn": "trap '' TERM; while true; do sleep 1; done", "forced": "trap '' TERM; while true; do sleep 1; done"} {
		s.applies(fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec:\n  %s\n  terminationGracePeriodSeconds: 60\n"+
			"  containers: [{name: main, image: \"podmill.test/busybox:1\", command: [sh, -c, %q]}]\n", name, selector, script))
	}
	s.does("wait", "--for", "condition=ready", "pod", "--all", "--timeout", "180s")
	forced := s.Pod("forced").UID
	took := func(args ...string) time.Duration {
		began := time.Now()
		s.does(append([]string{"delete", "pod"}, args...)...)
		return time.Since(began)
	}
	if d := took("polite"); d < 2*time.Second || d > 50*time.Second {
		t.Errorf("a pod that needs 2 s was gone after %v", d)
	}
	if d := took("stubborn", "--grace-period", "3"); d < 3*time.Second || d > 50*time.Second {
		t.Errorf("a pod that has 3 s was gone after %v", d)
	}
	took("forced", "--force", "--grace-period", "0")
	if s.Pod("forced") != nil {
		t.Error("the API still knows the pod that was removed by force")
	}
	s.Eventually("the node has ended it", func() bool { return s.seen(forced).Empty() })
}

// A static pod is seen, read and entered like any other.
func TestStoryStaticPod(t *testing.T) {
	s := newStory(t)
	manifest := strings.ReplaceAll(talker, selector, "restartPolicy: Always")
	manifest = strings.Replace(manifest, "name: talker", "name: talker, namespace: "+s.Namespace, 1)
	if err := os.WriteFile(filepath.Join(s.manifests, "talker.yaml"), []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	name := "talker-" + s.Node
	s.reaches(name, "is ready", ready)
	if out := s.does("get", "pods"); !strings.Contains(out, name) || !strings.Contains(out, "1/1") || !strings.Contains(out, "Running") {
		t.Errorf("kubectl get pods:\n%s", out)
	}
	if out := s.does("logs", name); out != "begin\n" {
		t.Errorf("the log is %q", out)
	}
	if out := s.does("exec", name, "--", "echo", "hello"); out != "hello\n" {
		t.Errorf("a command says %q", out)
	}
}

// A Node that somebody deletes comes back as another. The pods on it run on, and its static pods are shown as the new one's, for the cluster takes away what was the old one's.
func TestStoryNodeIsDeleted(t *testing.T) {
	s := newStory(t)
	s.manifest("static", "100000")
	s.applies(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      ` + selector + `
      terminationGracePeriodSeconds: 0
      containers: [{name: main, image: "podmill.test/busybox:1", command: [sleep, "100000"]}]
`)
	s.does("rollout", "status", "deployment/web", "--timeout", "180s")
	name := "static-" + s.Node
	s.reaches(name, "is ready", ready)
	running := func() (ids []string) {
		for _, pod := range s.own() {
			ids = append(ids, pod.Container("main").ID)
		}
		slices.Sort(ids)
		return ids
	}
	before, first := running(), s.node()
	s.does("delete", "node", s.Node)
	s.Eventually("another node is there, and takes pods", func() bool {
		now := s.node()
		return now != nil && now.UID != first.UID && s.nodeReady() && len(now.Spec.Taints) == 0
	})
	s.reaches(name, "is the new node's", func(pod *corev1.Pod) bool { return pod.OwnerReferences[0].UID == s.node().UID && ready(pod) })
	s.does("scale", "deployment/web", "--replicas", "3")
	s.does("rollout", "status", "deployment/web", "--timeout", "180s")
	for _, id := range before {
		if now := running(); !slices.Contains(now, id) || len(now) != len(before)+1 {
			t.Errorf("containers %v became %v", before, now)
		}
	}
	s.does("delete", "deployment", "web", "--cascade=foreground", "--timeout", "180s")
}

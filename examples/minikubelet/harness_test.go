package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/cri"
	"github.com/podmill/podmill/internal/testenv"
	"github.com/podmill/podmill/internal/testenv/testcsi"
)

// binary is minikubelet, as a user builds it.
var binary = testenv.NewProgram(".")

func TestMain(m *testing.M) {
	code := m.Run()
	testcsi.Remove()
	binary.Remove()
	os.Exit(code)
}

// node is a minikubelet process over a real containerd, and what it is given.
type node struct {
	*testing.T
	name       string // its own, so that its pods have UIDs of their own
	endpoint   string
	runtime    *cri.Client
	manifests  string
	root       string
	cgroupRoot string
	args       []string

	process *exec.Cmd
	output  bytes.Buffer
}

var nodes atomic.Int32

// newNode makes a node; start starts it. When the test ends all its pods are removed.
func newNode(t *testing.T, endpoint string) *node {
	t.Helper()
	testenv.Root(t)
	n := &node{T: t, name: fmt.Sprintf("node-%d-%d", os.Getpid(), nodes.Add(1)), endpoint: endpoint, manifests: t.TempDir(), root: t.TempDir(), cgroupRoot: testenv.CgroupRoot(t)}
	var err error
	if n.runtime, err = cri.Dial(t.Context(), endpoint); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = n.runtime.Close()
		if t.Failed() {
			events, _ := os.ReadFile(filepath.Join(n.root, "events.jsonl"))
			t.Logf("output:\n%s\nevents:\n%s", &n.output, events)
		}
	})
	t.Cleanup(func() { // before the clean-ups that check that nothing is left
		n.stop()
		n.args = append(n.args, "--stop-pods-on-exit")
		for _, e := range n.entries() {
			_ = os.Remove(e)
		}
		n.start()
		n.stop()
	})
	return n
}

func (n *node) entries() []string {
	files, err := filepath.Glob(filepath.Join(n.manifests, "*"))
	if err != nil {
		n.Fatal(err)
	}
	return files
}

// start starts the agent and waits until it answers.
func (n *node) start() {
	n.Helper()
	n.process = exec.Command(binary.Path(n), append([]string{
		"--container-runtime-endpoint", n.endpoint, "--pod-manifest-path", n.manifests, "--root-dir", n.root,
		"--cgroup-root", n.cgroupRoot, "--hostname-override", n.name, "--v", "1",
	}, n.args...)...)
	n.process.Stdout, n.process.Stderr = &n.output, &n.output
	n.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := n.process.Start(); err != nil {
		n.Fatal(err)
	}
	n.eventually("the agent answers", func() bool { _, err := n.ask("get", "-o", "json"); return err == nil })
}

// stop ends the agent with a signal, and waits for it.
func (n *node) stop() { n.signal(os.Interrupt) }

// crash kills the agent with no chance to do anything.
func (n *node) crash() { n.signal(os.Kill) }

func (n *node) signal(sig os.Signal) {
	n.Helper()
	if n.process == nil {
		return
	}
	_ = n.process.Process.Signal(sig)
	if err := n.process.Wait(); err != nil && sig != os.Kill {
		n.Errorf("the agent ended with: %v\n%s", err, &n.output)
	}
	n.process = nil
}

// ask runs one of minikubelet's commands against the agent.
func (n *node) ask(command string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var out, errOut bytes.Buffer
	code := runClient(ctx, append([]string{command, "--root-dir", n.root}, args...), &out, &errOut)
	if code != 0 {
		return out.String(), fmt.Errorf("exit code %d: %s", code, &errOut)
	}
	return out.String(), nil
}

// write puts a manifest in place as a careful editor does: all at once.
func (n *node) write(name, text string) {
	n.Helper()
	tmp := filepath.Join(n.manifests, "."+name)
	if err := os.WriteFile(tmp, []byte(text), 0o600); err != nil {
		n.Fatal(err)
	}
	if err := os.Rename(tmp, filepath.Join(n.manifests, name)); err != nil {
		n.Fatal(err)
	}
}

func (n *node) remove(name string) {
	n.Helper()
	if err := os.Remove(filepath.Join(n.manifests, name)); err != nil {
		n.Fatal(err)
	}
}

// pod returns a pod by the name in its manifest, nil if the agent does not have it.
func (n *node) pod(name string) *corev1.Pod {
	out, err := n.ask("get", "-o", "json", name)
	if err != nil {
		return nil
	}
	var pods []*corev1.Pod
	if err := json.Unmarshal([]byte(out), &pods); err != nil {
		n.Fatal(err)
	}
	return pods[0]
}

// eventually waits for something to become true.
func (n *node) eventually(what string, is func() bool) {
	n.Helper()
	timeout := time.After(90 * time.Second)
	for !is() {
		select {
		case <-timeout:
			n.Fatalf("it did not come to this: %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// reaches waits until a pod is as it should be, and returns it.
func (n *node) reaches(name, what string, is func(*corev1.Pod) bool) *corev1.Pod {
	n.Helper()
	var pod *corev1.Pod
	defer func() {
		if n.Failed() && pod != nil {
			status, _ := json.MarshalIndent(pod.Status, "", " ")
			n.Logf("pod %s: %s", name, status)
		}
	}()
	n.eventually("pod "+name+" "+what, func() bool { pod = n.pod(name); return pod != nil && is(pod) })
	return pod
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// waitsFor returns a condition: the container waits for that reason.
func waitsFor(reason string) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool {
		w := pod.Status.ContainerStatuses
		return len(w) > 0 && w[0].State.Waiting != nil && w[0].State.Waiting.Reason == reason
	}
}

// seen is what the runtime holds of a pod.
func (n *node) seen(uid types.UID) *podmill.RuntimePod {
	n.Helper()
	return testenv.Seen(n, n.runtime, uid)
}

// gone waits until nothing is left of a pod: runtime, directories, mounts, cgroups.
func (n *node) gone(pod *corev1.Pod) {
	n.Helper()
	n.eventually("pod "+pod.Name+" is gone from the runtime", func() bool { return n.seen(pod.UID).Empty() })
	n.eventually("pod "+pod.Name+" is gone from disk", func() bool {
		left, _ := filepath.Glob(filepath.Join(n.root, "pods", string(pod.UID)))
		logs, _ := filepath.Glob(filepath.Join(n.root, "log", "pods", "*_"+string(pod.UID)))
		links, _ := filepath.Glob(filepath.Join(n.root, "log", "containers", "*"))
		links = slices.DeleteFunc(links, func(link string) bool {
			target, _ := os.Readlink(link)
			return !strings.Contains(target, string(pod.UID))
		})
		status, _ := filepath.Glob(filepath.Join(n.root, "status", string(pod.UID)+"*"))
		return len(left)+len(logs)+len(links)+len(status) == 0
	})
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		n.Fatal(err)
	}
	if strings.Contains(string(mounts), string(pod.UID)) {
		n.Errorf("mounts of pod %s are left:\n%s", pod.Name, mounts)
	}
	for _, pattern := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
		for _, class := range []string{"", "/burstable", "/besteffort"} {
			if left, _ := filepath.Glob(pattern + n.cgroupRoot + "/kubepods" + class + "/pod" + string(pod.UID)); len(left) > 0 {
				n.Errorf("cgroups of pod %s are left: %v", pod.Name, left)
			}
		}
	}
}

// sh runs a script in a container.
func (n *node) sh(pod, container, script string) string {
	n.Helper()
	out, err := n.ask("exec", "-c", container, pod, "--", "sh", "-c", script)
	if err != nil {
		n.Fatalf("%s in %s of %s: %v", script, container, pod, err)
	}
	return strings.TrimSpace(out)
}

// podCgroup is the path of a pod's cgroup in each hierarchy.
func (n *node) podCgroup(pod *corev1.Pod) string {
	class := map[corev1.PodQOSClass]string{corev1.PodQOSBurstable: "/burstable", corev1.PodQOSBestEffort: "/besteffort"}[pod.Status.QOSClass]
	return n.cgroupRoot + "/kubepods" + class + "/pod" + string(pod.UID)
}

// processes returns the IDs of a container's processes, the first one first.
func (n *node) processes(pod *corev1.Pod, container string) []int {
	n.Helper()
	id := n.seen(pod.UID).Container(container).ID
	data, err := os.ReadFile("/sys/fs/cgroup/memory" + n.podCgroup(pod) + "/" + id + "/cgroup.procs")
	if err != nil {
		n.Fatal(err)
	}
	var all []int
	for _, line := range strings.Fields(string(data)) {
		pid, err := strconv.Atoi(line)
		if err != nil {
			n.Fatal(err)
		}
		all = append(all, pid)
	}
	return all
}

// kill kills a container behind everybody's back.
func (n *node) kill(pod *corev1.Pod, container string) {
	n.Helper()
	for _, pid := range n.processes(pod, container) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// wantSame fails unless the containers that ran are those that run.
func (n *node) wantSame(before, now *podmill.RuntimePod) {
	n.Helper()
	for _, c := range before.Containers {
		if c.State != podmill.StateRunning {
			continue
		}
		if same := now.Container(c.Name); same == nil || same.ID != c.ID || same.State != c.State || !same.StartedAt.Equal(c.StartedAt) {
			n.Errorf("container %s was touched: %+v, is %+v", c.Name, c, same)
		}
	}
}

// events returns what the agent has told people.
func (n *node) events() []corev1.Event {
	n.Helper()
	data, err := os.ReadFile(filepath.Join(n.root, "events.jsonl"))
	if err != nil {
		n.Fatal(err)
	}
	var all []corev1.Event
	for line := range strings.Lines(string(data)) {
		var e corev1.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			n.Fatalf("event %q: %v", line, err)
		}
		all = append(all, e)
	}
	return all
}

// wantEvents fails unless there is an event of each reason.
func (n *node) wantEvents(reasons ...string) {
	n.Helper()
	for _, reason := range reasons {
		n.eventually("event "+reason, func() bool {
			return slices.ContainsFunc(n.events(), func(e corev1.Event) bool { return e.Reason == reason })
		})
	}
}

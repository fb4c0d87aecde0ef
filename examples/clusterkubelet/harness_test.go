package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/cri"
	"github.com/podmill/podmill/internal/testenv"
	"github.com/podmill/podmill/internal/testenv/testapi"
	"github.com/podmill/podmill/internal/testenv/testcsi"
	"github.com/podmill/podmill/podmilltest"
)

// binary is clusterkubelet, as a user builds it.
var binary = testenv.NewProgram(".")

func TestMain(m *testing.M) {
	// One of the handlers waits by the clock of the process, of which virtual time is decades away.
	utilruntime.ErrorHandlers = nil
	code := m.Run()
	testcsi.Remove()
	binary.Remove()
	os.Exit(code)
}

// cluster is a clusterkubelet process between a real containerd and a real API server.
type cluster struct {
	*testapi.API
	t         *testing.T
	runtime   *cri.Client
	manifests string
	root      string
	args      []string

	after []func() // is done when all has ended

	process *exec.Cmd
	output  bytes.Buffer
}

// newCluster makes a node; start starts it. When the test ends its pods are deleted, and nothing of them may be left.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	testenv.Root(t)
	testenv.Containerd(t)
	return newNode(t, testapi.New(t))
}

// newNode is newCluster where there is an API server already.
func newNode(t *testing.T, api *testapi.API) *cluster {
	t.Helper()
	testenv.Root(t)
	endpoint := testenv.Containerd(t)
	c := &cluster{API: api, t: t, manifests: t.TempDir(), root: t.TempDir()}
	_, _, authority := c.Plane.ClientCertificate()
	c.args = []string{
		"--kubeconfig", c.NodeKubeconfig, "--container-runtime-endpoint", endpoint, "--root-dir", c.root, "--cgroup-root", testenv.CgroupRoot(t),
		"--hostname-override", c.Node, "--pod-manifest-path", c.manifests, "--v", "1",
		"--node-ip", "127.0.0.1", "--address", "127.0.0.1", "--port", "0", "--client-ca-file", authority,
		"--eviction-hard", "memory.available<1Mi", // however full the machine's disk is
	}
	var err error
	if c.runtime, err = cri.Dial(t.Context(), endpoint); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("output:\n%s", &c.output)
		}
		_ = c.runtime.Close()
	})
	t.Cleanup(c.end)
	return c
}

func (c *cluster) start() {
	c.t.Helper()
	c.process = exec.Command(binary.Path(c.t), c.args...)
	c.process.Stdout, c.process.Stderr = &c.output, &c.output
	c.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.process.Start(); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) signal(sig os.Signal) {
	c.t.Helper()
	if c.process == nil {
		return
	}
	_ = c.process.Process.Signal(sig)
	if err := c.process.Wait(); err != nil && sig != os.Kill {
		c.t.Errorf("the agent ended with: %v", err)
	}
	c.process = nil
}

// end deletes all pods, waits until nothing is left of them, and stops the agent.
func (c *cluster) end() {
	if c.process == nil {
		c.start()
	}
	files, _ := filepath.Glob(filepath.Join(c.manifests, "*"))
	for _, file := range files {
		_ = os.Remove(file)
	}
	pods := &corev1.PodList{}
	c.List("pods", pods)
	for i := range pods.Items {
		c.Delete("pods", pods.Items[i].Name, 0)
	}
	c.Eventually("nothing is left in the runtime", func() bool { return len(c.own()) == 0 })
	c.Eventually("nothing is left on disk", func() bool {
		left, _ := filepath.Glob(filepath.Join(c.root, "pods", "*"))
		return len(left) == 0
	})
	c.signal(os.Interrupt)
	for _, f := range c.after {
		f()
	}
}

// own returns the pods that this agent has in the runtime.
func (c *cluster) own() []*podmill.RuntimePod {
	c.t.Helper()
	return testenv.Own(c.t, c.runtime, c.root)
}

func (c *cluster) seen(uid types.UID) *podmill.RuntimePod {
	c.t.Helper()
	return testenv.Seen(c.t, c.runtime, uid)
}

// reaches waits until a pod is as it should be in the API, and returns it.
func (c *cluster) reaches(name, what string, is func(*corev1.Pod) bool) *corev1.Pod {
	c.t.Helper()
	var pod *corev1.Pod
	defer func() {
		if c.t.Failed() && pod != nil {
			status, _ := json.MarshalIndent(pod.Status, "", " ")
			c.t.Logf("pod %s: %s", name, status)
		}
	}()
	c.Eventually("pod "+name+" "+what, func() bool { pod = c.Pod(name); return pod != nil && is(pod) })
	return pod
}

func (c *cluster) gone(name string) {
	c.t.Helper()
	c.Eventually("pod "+name+" is gone from the API", func() bool { return c.Pod(name) == nil })
}

// sh runs a script in a container.
func (c *cluster) sh(pod *corev1.Pod, container, script string) string {
	c.t.Helper()
	result, err := c.runtime.Exec(c.t.Context(), c.seen(pod.UID).Container(container).ID, []string{"sh", "-c", script})
	if err != nil {
		c.t.Fatalf("%s in %s of %s: %v", script, container, pod.Name, err)
	}
	return strings.TrimSpace(string(result.Stdout))
}

func (c *cluster) nodeReady() bool {
	node := &corev1.Node{}
	if !c.Get("nodes", c.Node, node) {
		return false
	}
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

const busybox = "podmill.test/busybox:1"

func sleeper(name string, opts ...podmilltest.PodOption) *corev1.Pod {
	return podmilltest.Pod("x/"+name, append(opts, podmilltest.Grace(0), podmilltest.Container("main", busybox, podmilltest.Command("sleep", "100000")))...)
}

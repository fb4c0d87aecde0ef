package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/cri"
	"github.com/podmill/podmill/internal/testenv"
)

// binary is edge, as a user builds it.
var binary = testenv.NewProgram(".")

func TestMain(m *testing.M) {
	code := m.Run()
	binary.Remove()
	os.Exit(code)
}

// site is an edge process on a machine of its own, as far as the test goes.
type site struct {
	*testing.T
	runtime *cri.Client
	root    string
	args    []string

	process *exec.Cmd
	output  bytes.Buffer
}

// newSite makes a machine that is not switched on. Whoever makes it leaves no pods when the test ends.
func newSite(t *testing.T, args ...string) *site {
	t.Helper()
	testenv.Root(t)
	endpoint := testenv.Containerd(t)
	s := &site{T: t, root: t.TempDir()}
	s.args = append([]string{"--container-runtime-endpoint", endpoint, "--root-dir", s.root, "--cgroup-root", testenv.CgroupRoot(t), "--node-ip", "127.0.0.1", "--v", "1"}, args...)
	var err error
	if s.runtime, err = cri.Dial(t.Context(), endpoint); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("output:\n%s", &s.output)
		}
		_ = s.runtime.Close()
	})
	return s
}

func (s *site) start() {
	s.Helper()
	s.process = exec.Command(binary.Path(s), s.args...)
	s.process.Stdout, s.process.Stderr = &s.output, &s.output
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.process.Start(); err != nil {
		s.Fatal(err)
	}
}

func (s *site) signal(sig os.Signal) {
	s.Helper()
	if s.process == nil {
		return
	}
	_ = s.process.Process.Signal(sig)
	if err := s.process.Wait(); err != nil && sig != os.Kill {
		s.Errorf("the agent ended with: %v", err)
	}
	s.process = nil
}

// losePower kills the agent, and all that ran is gone.
func (s *site) losePower() {
	s.Helper()
	s.signal(os.Kill)
	for _, pod := range s.own() {
		for _, sandbox := range pod.Sandboxes {
			if err := s.runtime.StopSandbox(s.Context(), sandbox.ID); err != nil {
				s.Fatal(err)
			}
			if err := s.runtime.RemoveSandbox(s.Context(), sandbox.ID); err != nil {
				s.Fatal(err)
			}
		}
	}
}

// end waits until the agent has nothing any more, and stops it.
func (s *site) end() {
	s.eventually("nothing is left", func() bool {
		left, _ := filepath.Glob(filepath.Join(s.root, "pods", "*"))
		files, _ := filepath.Glob(filepath.Join(s.root, "status", "*"))
		return len(left)+len(files)+len(s.own()) == 0
	})
	s.signal(os.Interrupt)
}

// own returns what this agent has in the runtime.
func (s *site) own() []*podmill.RuntimePod {
	s.Helper()
	return testenv.Own(s, s.runtime, s.root)
}

// containers returns the IDs of all containers that this agent has.
func (s *site) containers() []string {
	s.Helper()
	var ids []string
	for _, pod := range s.own() {
		for i := range pod.Containers {
			ids = append(ids, pod.Containers[i].ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// pod returns what the files say of a pod, nil if they say nothing.
func (s *site) pod(name string) *corev1.Pod {
	s.Helper()
	files, _ := filepath.Glob(filepath.Join(s.root, "status", "*.json"))
	for _, file := range files {
		pod := &corev1.Pod{}
		if data, err := os.ReadFile(file); err == nil && json.Unmarshal(data, pod) == nil && pod.Name == name {
			return pod
		}
	}
	return nil
}

// reaches waits until a pod is as it should be, as its file says, and returns it.
func (s *site) reaches(name, what string, is func(*corev1.Pod) bool) *corev1.Pod {
	s.Helper()
	var pod *corev1.Pod
	s.eventually("pod "+name+" "+what, func() bool { pod = s.pod(name); return pod != nil && is(pod) })
	return pod
}

func (s *site) eventually(what string, is func() bool) {
	s.Helper()
	timeout := time.After(90 * time.Second)
	for !is() {
		select {
		case <-timeout:
			s.Fatalf("it did not come to this: %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func succeeded(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodSucceeded }

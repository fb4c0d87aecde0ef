package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// OwnControlPlane is a [ControlPlane] that one test has for itself, and whose API server it may kill.
type OwnControlPlane struct {
	ControlPlane
	script, home string
}

// OwnAPIServer starts a control plane for this test alone, which takes some seconds; tests that want one at the same time, also of other
// packages, queue.
func OwnAPIServer(t testing.TB) *OwnControlPlane {
	t.Helper()
	APIServer(t) // it was built, and there is what makes certificates
	dir := need(t, "the set-up's directory", "PODMILL_DIR")
	home := filepath.Join(dir, "own")
	p := &OwnControlPlane{home: home, script: script(t, "controlplane.sh")}
	p.dir = filepath.Join(home, "controlplane")
	p.Kubeconfig = filepath.Join(p.dir, "admin.kubeconfig")
	queue(t, filepath.Join(dir, ".own-controlplane"))
	t.Cleanup(func() { p.run(t, "stop") })
	p.Start(t)
	return p
}

// Start starts what does not run of it, and returns when the API server is ready; what it knew it knows again.
func (p *OwnControlPlane) Start(t testing.TB) { t.Helper(); p.run(t, "start") }

// Kill kills the API server, and leaves etcd running.
func (p *OwnControlPlane) Kill(t testing.TB) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(p.dir, "kube-apiserver.pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatalf("kill the API server: %v", err)
	}
}

func (p *OwnControlPlane) run(t testing.TB, verb string) {
	t.Helper()
	programs := os.Getenv("KUBEBUILDER_ASSETS")
	if programs == "" {
		found, _ := filepath.Glob(filepath.Join(filepath.Dir(p.home), "bin", "kubernetes-v*"))
		if len(found) != 1 {
			t.Fatalf("control plane's programs: %v, want one directory", found)
		}
		programs = found[0]
	}
	cmd := exec.Command(p.script, verb)
	cmd.Env = append(os.Environ(), "PODMILL_DIR="+p.home, "KUBEBUILDER_ASSETS="+programs)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", p.script, verb, err, out)
	}
}

package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A registry takes what Push makes, and serves it back under the reference.
func TestPushedImageCanBeFetched(t *testing.T) {
	for name, r := range map[string]func(testing.TB) Registry{"plain": PlainRegistry, "auth": AuthRegistry} {
		t.Run(name, func(t *testing.T) {
			reg := r(t)
			repository := fmt.Sprintf("testenv/%s-%d", name, os.Getpid())
			if ref := reg.Push(t, repository+":1", 1000); ref != reg.Addr+"/"+repository+":1" {
				t.Errorf("reference %s", ref)
			}
			var m manifest
			if err := reg.get("/v2/"+repository+"/manifests/1", &m); err != nil {
				t.Fatal(err)
			}
			if len(m.Layers) < 2 {
				t.Errorf("layers %v", m.Layers)
			}
			if reg.User == "" {
				return
			}
			reg.Password = "wrong"
			if err := reg.get("/v2/"+repository+"/manifests/1", &m); err == nil || !strings.Contains(err.Error(), "401") {
				t.Errorf("with a wrong password: %v, want 401", err)
			}
		})
	}
}

// The daemon can be away and come back; nothing is left at the end.
func TestOwnContainerdStartsAndHalts(t *testing.T) {
	d := OwnContainerd(t)
	socket := strings.TrimPrefix(d.Endpoint, "unix://")
	if _, err := os.Stat(socket); err != nil {
		t.Fatal(err)
	}
	d.Halt(t)
	if err := exec.Command(d.script, "status", "cr").Run(); err == nil {
		t.Error("halted, yet it runs")
	}
	d.Start(t)
	if err := exec.Command(d.script, "status", "cr").Run(); err != nil {
		t.Errorf("started, yet it does not run: %v", err)
	}
}

// The tree is gone from every hierarchy when the test that made it has ended.
func TestCgroupRootIsRemoved(t *testing.T) {
	var made []string
	t.Run("user", func(t *testing.T) {
		root := CgroupRoot(t)
		mounts, err := cgroupMounts()
		if err != nil || len(mounts) == 0 {
			t.Fatalf("hierarchies %v, %v", mounts, err)
		}
		for _, m := range mounts {
			dir := filepath.Join(m, root, "kubepods", "pod1")
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Skipf("needs a writable cgroup hierarchy: %v", err)
			}
			made = append(made, filepath.Join(m, root))
		}
	})
	for _, dir := range made {
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", dir, err)
		}
	}
}

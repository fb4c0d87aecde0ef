package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// A Daemon is a containerd 2.x that one test has for itself and may stop.
type Daemon struct {
	Endpoint string
	script   string
}

// OwnContainerd starts a containerd for this test alone, which takes a second;
// tests that want one at the same time, also of other packages, queue.
func OwnContainerd(t testing.TB) *Daemon {
	t.Helper()
	Root(t)
	Containerd(t)
	dir := need(t, "the set-up's directory", "PODMILL_DIR")
	d := &Daemon{Endpoint: "unix://" + filepath.Join(dir, "cr/run/containerd.sock"), script: script(t, "containerd.sh")}
	queue(t, filepath.Join(dir, ".own-containerd"))
	t.Cleanup(func() { d.run(t, "stop") })
	d.Start(t)
	return d
}

// queue returns when no other test has the file, which this one has until it ends.
func queue(t testing.TB, path string) {
	t.Helper()
	lock, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.Close() })
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
}

// Start starts the daemon and returns when it is ready; containers that lived
// through Halt are found again.
func (d *Daemon) Start(t testing.TB) { t.Helper(); d.run(t, "start") }

// Halt ends the daemon and leaves its containers running.
func (d *Daemon) Halt(t testing.TB) { t.Helper(); d.run(t, "halt") }

func (d *Daemon) run(t testing.TB, verb string) {
	t.Helper()
	if out, err := exec.Command(d.script, verb, "cr").CombinedOutput(); err != nil {
		t.Fatalf("%s %s cr: %v\n%s", d.script, verb, err, out)
	}
}

// script finds a script of hack/ above the package's directory, where go test
// runs the test.
func script(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		path := filepath.Join(dir, "hack", name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Fatalf("hack/%s is not above the test's directory", name)
	return ""
}

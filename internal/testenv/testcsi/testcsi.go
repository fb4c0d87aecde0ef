// Package testcsi gives tests a CSI driver: a process of its own, whose faults they choose.
package testcsi

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/podmill/podmill/internal/testenv"
)

// program is the driver.
//
//nolint:gochecknoglobals // to build it takes seconds
var program = testenv.NewProgram("github.com/podmill/podmill/internal/testenv/testcsi/driver")

// Remove removes what was built for drivers. It is for TestMain, when all tests have ended.
func Remove() { program.Remove() }

// Driver is a CSI driver.
type Driver struct {
	testing.TB
	Name string

	dir      string
	registry string
	args     []string
	process  *exec.Cmd
	output   bytes.Buffer
}

// Call is a call that a driver got.
type Call struct {
	Name    string
	Request map[string]any // by the names of the CSI
}

// New returns a driver that registers in a directory of sockets when it is started. args are flags of its own, such as -can. It ends with the test.
func New(t testing.TB, registry string, args ...string) *Driver {
	t.Helper()
	d := &Driver{TB: t, Name: "csi.test", registry: registry, args: args}
	// The name of a socket has to be short.
	var err error
	if d.dir, err = os.MkdirTemp("", "csi"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.Kill()
		if t.Failed() {
			t.Logf("the driver's output:\n%s", &d.output)
		}
		_ = os.RemoveAll(d.dir)
	})
	return d
}

// Start starts the driver, and waits until its sockets are there.
func (d *Driver) Start() {
	d.Helper()
	if err := os.MkdirAll(d.registry, 0o750); err != nil {
		d.Fatal(err)
	}
	d.process = exec.Command(program.Path(d.TB), append([]string{"-dir", d.dir, "-name", d.Name, "-registry", d.registry}, d.args...)...)
	d.process.Stdout, d.process.Stderr = &d.output, &d.output
	d.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := d.process.Start(); err != nil {
		d.Fatal(err)
	}
	d.eventually("the driver listens", func() bool {
		conn, err := net.Dial("unix", d.Socket()) // the last that it makes
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

// Socket is by what the driver registers.
func (d *Driver) Socket() string { return filepath.Join(d.registry, d.Name+"-reg.sock") }

// Stop ends the driver in good order: its sockets go.
func (d *Driver) Stop() { d.end(syscall.SIGTERM) }

// Kill ends the driver with no chance to do anything: its sockets stay.
func (d *Driver) Kill() { d.end(syscall.SIGKILL) }

func (d *Driver) end(s os.Signal) {
	if d.process == nil {
		return
	}
	_ = d.process.Process.Signal(s)
	_ = d.process.Wait() // it may have crashed, as it should
	d.process = nil
}

// Crashed waits until the driver has ended by itself.
func (d *Driver) Crashed() {
	d.Helper()
	d.eventually("the driver has crashed", func() bool {
		return d.process.Process.Signal(syscall.Signal(0)) != nil || exited(d.process.Process.Pid)
	})
	d.end(syscall.SIGKILL)
}

// exited reports whether a child has ended and was not waited for.
func exited(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := bytes.Cut(data, []byte(") "))
	return err != nil || bytes.HasPrefix(rest, []byte("Z"))
}

// Volume makes a volume, and returns the directory of what is in it.
func (d *Driver) Volume(id string) string {
	d.Helper()
	dir := filepath.Join(d.dir, "volumes", id)
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "data"), 0o750), os.WriteFile(filepath.Join(dir, "volume.json"), []byte("{}"), 0o600)); err != nil {
		d.Fatal(err)
	}
	return filepath.Join(dir, "data")
}

// Volumes returns the IDs of all volumes.
func (d *Driver) Volumes() (ids []string) {
	entries, _ := os.ReadDir(filepath.Join(d.dir, "volumes"))
	for _, e := range entries {
		ids = append(ids, e.Name())
	}
	return ids
}

// Fault has calls of that name go wrong from now on: "hang", "hang-after", "crash", "crash-after", "nothing", "file", "link", "elsewhere", "fail CODE message" or
// "fail-after CODE message". Empty is none.
func (d *Driver) Fault(call, fault string) {
	d.Helper()
	data, err := json.Marshal(map[string]string{call: fault})
	if err == nil {
		err = os.WriteFile(filepath.Join(d.dir, "faults.new"), data, 0o600)
	}
	if err == nil {
		err = os.Rename(filepath.Join(d.dir, "faults.new"), filepath.Join(d.dir, "faults.json"))
	}
	if err != nil {
		d.Fatal(err)
	}
}

// Calls returns the calls of these names that the driver got, in order; without names all that are about volumes.
func (d *Driver) Calls(names ...string) (calls []Call) {
	d.Helper()
	file, err := os.Open(filepath.Join(d.dir, "calls.jsonl"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		d.Fatal(err)
	}
	defer file.Close()
	if len(names) == 0 {
		names = []string{"NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume", "NodeExpandVolume"}
	}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var c Call
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			d.Fatal(err)
		}
		if slices.Contains(names, c.Name) {
			calls = append(calls, c)
		}
	}
	return calls
}

func (d *Driver) eventually(what string, is func() bool) {
	d.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			d.Fatalf("it did not come to this: %s\n%s", what, &d.output)
		}
	}
}

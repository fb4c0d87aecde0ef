package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podmill/podmill/syncpod"
)

// rootDir is the agent's directory, locked: two agents on one directory would take each other's pods for their own.
type rootDir struct {
	lock   *os.File
	events io.WriteCloser
	log    io.WriteCloser
}

func openRoot(path string) (*rootDir, error) {
	if err := os.MkdirAll(path, 0o750); err != nil {
		return nil, fmt.Errorf("make --root-dir: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, "agent.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--root-dir cannot be written: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("another agent runs on --root-dir %s; give this one its own", path), lock.Close())
	}
	d := &rootDir{lock: lock, log: os.Stderr}
	if d.events, err = appendTo(filepath.Join(path, "events.jsonl")); err != nil {
		return nil, err
	}
	if isTerminal(os.Stderr) && isTerminal(os.Stdout) {
		// The table is drawn over and over; a log would tear it.
		name := filepath.Join(path, "agent.log")
		if d.log, err = appendTo(name); err != nil {
			return nil, err
		}
		_, _ = fmt.Fprintln(os.Stderr, "the log is", name)
	}
	return d, nil
}

func (d *rootDir) close() {
	_ = d.events.Close()
	_ = d.lock.Close()
}

// maxFile is when a file that is only written to begins anew; the one before is kept.
const maxFile = 10 << 20

// journal is a file that lines are appended to, of no more than maxFile; what was before that is in <name>.1.
type journal struct {
	mu   sync.Mutex
	file *os.File
	size int64
}

func appendTo(name string) (*journal, error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // the user says where
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &journal{file: file, size: info.Size()}, nil
}

func (j *journal) Write(lines []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.size > maxFile {
		j.turn()
	}
	n, err := j.file.Write(lines)
	j.size += int64(n)
	return n, err
}

// turn begins the file anew. Where that cannot be done, it goes on growing: what is said counts for more.
func (j *journal) turn() {
	name := j.file.Name()
	if err := os.Rename(name, name+".1"); err != nil {
		return
	}
	next, err := appendTo(name)
	if err != nil {
		return
	}
	_ = j.file.Close()
	j.file, j.size = next.file, next.size
}

func (j *journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.file.Close()
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// width is how many characters a row of the terminal holds; 0 where nobody knows.
func width(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}

// node describes this machine to its pods.
func (c *config) node() syncpod.Node {
	n := syncpod.Node{IPs: c.nodeIPs, Allocatable: corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI)}}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err == nil {
		n.MemoryBytes = int64(info.Totalram) * int64(info.Unit) //nolint:gosec // less than an exbibyte
		n.Allocatable[corev1.ResourceMemory] = *resource.NewQuantity(n.MemoryBytes, resource.BinarySI)
	}
	return n
}

// hostIPs returns the machine's addresses that others can reach, as the node's unless --node-ip says more.
func hostIPs() []string {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var ips []string
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && !strings.HasPrefix(n.IP.String(), "fe80:") {
			ips = append(ips, n.IP.String())
		}
	}
	return ips[:min(1, len(ips))]
}

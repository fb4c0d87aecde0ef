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

func appendTo(name string) (io.WriteCloser, error) {
	return os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
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

package machine

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// version is the one of Kubernetes whose kubelet the examples are like; API servers and tools read it.
const version = "v1.37.0"

// Lock makes the root directory and takes it: two agents on one directory would take each other's pods for their own.
func (f *Flags) Lock() (unlock func(), err error) {
	if err := os.MkdirAll(f.Root, 0o750); err != nil {
		return nil, fmt.Errorf("make --root-dir: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(f.Root, "agent.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--root-dir cannot be written: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("another agent runs on --root-dir %s; give this one its own", f.Root)
	}
	return func() { _ = file.Close() }, nil
}

// Resources are what this machine has: processors, memory, and the disk that the root directory is on.
func (f *Flags) Resources() (corev1.ResourceList, error) {
	var info unix.Sysinfo_t
	var disk unix.Statfs_t
	if err := unix.Sysinfo(&info); err != nil {
		return nil, fmt.Errorf("ask for the machine's memory: %w", err)
	}
	if err := unix.Statfs(f.Root, &disk); err != nil {
		return nil, fmt.Errorf("ask for the size of the disk of %s: %w", f.Root, err)
	}
	return corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(int64(info.Totalram)*int64(info.Unit), resource.BinarySI), //nolint:gosec // less than an exbibyte
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(int64(disk.Blocks)*int64(disk.Bsize), resource.BinarySI),  //nolint:gosec,unconvert // likewise; on some machines Bsize has 32 bits
	}, nil
}

// Info says what this machine is.
func Info() (corev1.NodeSystemInfo, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return corev1.NodeSystemInfo{}, fmt.Errorf("ask for the kernel's name: %w", err)
	}
	return corev1.NodeSystemInfo{
		MachineID: firstLine("/etc/machine-id"), SystemUUID: firstLine("/sys/class/dmi/id/product_uuid"),
		BootID: firstLine("/proc/sys/kernel/random/boot_id"), KernelVersion: unix.ByteSliceToString(name.Release[:]), OSImage: osImage(),
		KubeletVersion: version, OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH,
	}, nil
}

func firstLine(file string) string {
	data, _ := os.ReadFile(file) //nolint:gosec // a file of the system; where there is none, nothing is said
	line, _, _ := strings.Cut(string(data), "\n")
	return line
}

// osImage is what the distribution calls itself.
func osImage() string {
	file, err := os.Open("/etc/os-release")
	if err != nil {
		return ""
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "PRETTY_NAME="); ok {
			if name, err := strconv.Unquote(value); err == nil {
				return name
			}
			return value
		}
	}
	return ""
}

// hostIPs returns the machine's first address that others can reach.
func hostIPs() []string {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && !n.IP.IsLinkLocalUnicast() {
			return []string{n.IP.String()}
		}
	}
	return nil
}

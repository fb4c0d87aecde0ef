package main

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/admission"
	"github.com/podmill/podmill/agent"
	"github.com/podmill/podmill/node"
)

// version is the one of Kubernetes whose kubelet this is like; API servers and tools read it.
const version = "v1.37.0"

// lock makes the root directory and takes it: two agents on one directory would take each other's pods for their own.
func lock(root string) (unlock func(), err error) {
	if err := os.MkdirAll(root, 0o750); err != nil {
		return nil, fmt.Errorf("make --root-dir: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(root, "agent.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--root-dir cannot be written: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("another agent runs on --root-dir %s; give this one its own", root)
	}
	return func() { _ = file.Close() }, nil
}

// machine says what this machine is and has. Pods may have all of it: nothing is set apart for the system.
func machine(root string) (node.State, error) {
	var name unix.Utsname
	var info unix.Sysinfo_t
	var disk unix.Statfs_t
	if err := unix.Uname(&name); err != nil {
		return node.State{}, fmt.Errorf("ask for the kernel's name: %w", err)
	}
	if err := unix.Sysinfo(&info); err != nil {
		return node.State{}, fmt.Errorf("ask for the machine's memory: %w", err)
	}
	if err := unix.Statfs(root, &disk); err != nil {
		return node.State{}, fmt.Errorf("ask for the size of the disk of %s: %w", root, err)
	}
	resources := corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(int64(info.Totalram)*int64(info.Unit), resource.BinarySI), //nolint:gosec // less than an exbibyte
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(int64(disk.Blocks)*int64(disk.Bsize), resource.BinarySI),  //nolint:gosec,unconvert // likewise; on some machines Bsize has 32 bits
	}
	return node.State{
		Capacity: resources, Allocatable: resources,
		Info: corev1.NodeSystemInfo{
			MachineID: firstLine("/etc/machine-id"), SystemUUID: firstLine("/sys/class/dmi/id/product_uuid"),
			BootID: firstLine("/proc/sys/kernel/random/boot_id"), KernelVersion: unix.ByteSliceToString(name.Release[:]), OSImage: osImage(),
			KubeletVersion: version, OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH,
		},
	}, nil
}

// labels are those that every node has, and those of --node-labels.
func (c *config) labels() map[string]string {
	labels := map[string]string{corev1.LabelHostname: c.nodeName, corev1.LabelOSStable: runtime.GOOS, corev1.LabelArchStable: runtime.GOARCH}
	maps.Copy(labels, c.nodeLabels)
	return labels
}

// state says how the node does.
func (c *config) state(ctx context.Context, s node.State, reporter podmill.StatusReporter, a *agent.Agent) node.State {
	for _, ip := range c.nodeIPs {
		s.Addresses = append(s.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
	}
	s.Addresses = append(s.Addresses, corev1.NodeAddress{Type: corev1.NodeHostName, Address: c.nodeName})
	status, err := reporter.RuntimeStatus(ctx)
	var network error
	if err == nil {
		s.Info.ContainerRuntimeVersion = status.Name + "://" + status.Version
		for _, name := range status.Handlers {
			s.RuntimeHandlers = append(s.RuntimeHandlers, corev1.NodeRuntimeHandler{Name: name})
		}
		err = wrong("RuntimeReady", status.RuntimeReady)
		network = wrong("NetworkReady", status.NetworkReady)
	}
	s.Conditions = []corev1.NodeCondition{
		node.Pressure(corev1.NodeMemoryPressure, false), node.Pressure(corev1.NodeDiskPressure, false), node.Pressure(corev1.NodePIDPressure, false),
		node.Ready(err, network, a.Healthy()),
	}
	return s
}

// admits says what pods are measured against: this machine, with what the cluster has made of it.
func (c *config) admits(machine node.State, self *node.Node) admission.Node {
	n := admission.Node{Name: c.nodeName, OS: runtime.GOOS, Allocatable: machine.Allocatable, Labels: c.labels(), Taints: c.taints}
	if known := self.Known(); known != nil {
		n.Labels, n.Taints = known.Labels, known.Spec.Taints
	}
	return n
}

func wrong(name string, c podmill.Condition) error {
	if c.OK {
		return nil
	}
	return fmt.Errorf("container runtime not ready: %s=false reason:%s message:%s", name, c.Reason, c.Message)
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

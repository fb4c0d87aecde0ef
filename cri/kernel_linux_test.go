package cri_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/cri"
	"github.com/podmill/podmill/internal/testenv"
)

func ptr[T any](v T) *T { return &v }

func limits(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)},
	}
}

// A container that needs more memory than its limit is killed, and said to be.
func TestOOMKilled(t *testing.T) {
	t.Parallel()
	eachContainerd(t, func(t *testing.T, endpoint string) {
		r := start(t, dial(t, endpoint), "", func(c *podmill.ContainerSpec) {
			c.Container.Resources = limits("1", "24Mi")
			c.Command = []string{"tail", "/dev/zero"} // keeps the last line, which has no end
		})
		if c := r.exited(); c.ExitCode != 137 || c.Reason != "OOMKilled" {
			t.Errorf("code %d, reason %s", c.ExitCode, c.Reason)
		}
	})
}

// What a Pod asks for in the API's units arrives in the kernel's.
func TestLimitsReachTheKernel(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"cpu/cpu.shares": "256", "cpu/cpu.cfs_quota_us": "50000", "cpu/cpu.cfs_period_us": "100000", "memory/memory.limit_in_bytes": "33554432",
	}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		files = map[string]string{"cpu.max": "50000 100000", "memory.max": "33554432", "memory.oom.group": "1"}
	}
	eachContainerd(t, func(t *testing.T, endpoint string) {
		r := start(t, dial(t, endpoint), "exec sleep 1000", func(c *podmill.ContainerSpec) { c.Container.Resources = limits("500m", "32Mi") })
		for file, want := range files {
			if got := r.output("cat /sys/fs/cgroup/" + file); got != want {
				t.Errorf("%s is %s, want %s", file, got, want)
			}
		}
	})
}

// The security context is what the container's process has.
func TestSecurityContextReachesTheKernel(t *testing.T) {
	t.Parallel()
	eachContainerd(t, func(t *testing.T, endpoint string) {
		r := start(t, dial(t, endpoint), "exec sleep 1000", func(c *podmill.ContainerSpec) {
			c.Sandbox.Pod.Spec.SecurityContext = &corev1.PodSecurityContext{
				FSGroup: ptr(int64(2000)), SupplementalGroups: []int64{3000}, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
				Sysctls: []corev1.Sysctl{{Name: "net/ipv4/ip_unprivileged_port_start", Value: "80"}},
			}
			c.User = &podmill.User{UID: ptr(int64(1000)), GID: ptr(int64(1001))}
			c.Container.SecurityContext = &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr(false), ReadOnlyRootFilesystem: ptr(true), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			}
		})
		status := strings.Fields(r.output("cat /proc/1/status"))
		word := func(name string, n int) string {
			for i, f := range status {
				if f == name+":" {
					return strings.Join(status[i+1:i+1+n], " ")
				}
			}
			return ""
		}
		for _, tc := range []struct{ name, want string }{
			{"Uid", "1000"}, {"Gid", "1001"}, {"Groups", "1001 2000 3000"}, {"NoNewPrivs", "1"}, {"Seccomp", "2"}, {"CapBnd", "0000000000000000"},
		} {
			if got := word(tc.name, len(strings.Fields(tc.want))); got != tc.want && !(tc.name == "Groups" && strings.HasPrefix(got, "2000 3000")) {
				t.Errorf("%s is %s, want %s", tc.name, got, tc.want)
			}
		}
		if got := r.output("cat /proc/sys/net/ipv4/ip_unprivileged_port_start"); got != "80" {
			t.Errorf("the sysctl is %s", got)
		}
		if got := r.output("touch /x 2>&1 || true"); !strings.Contains(got, "Read-only") {
			t.Errorf("the root file system can be written to: %s", got)
		}
		if got := r.output("wc -c < /proc/timer_list 2>/dev/null || true"); got != "0" && got != "" {
			t.Errorf("/proc/timer_list is not masked: %s bytes", got)
		}
	})
}

// A Localhost profile is found below the root, and holds.
func TestSeccompProfile(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	const profile = `{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["mkdir","mkdirat"],"action":"SCMP_ACT_ERRNO","errnoRet":38}]}`
	if err := os.MkdirAll(filepath.Join(root, "profiles"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "profiles", "no-mkdir.json"), []byte(profile), 0o600); err != nil {
		t.Fatal(err)
	}
	eachContainerd(t, func(t *testing.T, endpoint string) {
		r := start(t, dial(t, endpoint, cri.WithSeccompRoot(root)), "exec sleep 1000", func(c *podmill.ContainerSpec) {
			c.Container.SecurityContext = &corev1.SecurityContext{SeccompProfile: &corev1.SeccompProfile{
				Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: ptr("profiles/no-mkdir.json"),
			}}
		})
		if got := r.output("mkdir /tmp/x 2>&1 || true"); !strings.Contains(got, "Function not implemented") {
			t.Errorf("mkdir says %q", got)
		}
	})
}

// What one runtime can do and another would leave out without a word is done or refused.
func TestOldRuntimesRefuse(t *testing.T) {
	t.Parallel()
	strict := func(c *podmill.ContainerSpec) {
		c.Sandbox.Pod.Spec.SecurityContext = &corev1.PodSecurityContext{
			SupplementalGroups: []int64{3000}, SupplementalGroupsPolicy: ptr(corev1.SupplementalGroupsPolicyStrict),
		}
	}
	mounted := func(c *podmill.ContainerSpec) {
		c.Mounts = []podmill.Mount{{ContainerPath: "/image", Image: image, ReadOnly: true}}
	}
	t.Run("containerd2", func(t *testing.T) {
		r := start(t, dial(t, testenv.Containerd(t)), "exec sleep 1000", func(c *podmill.ContainerSpec) { strict(c); mounted(c) })
		if got := r.output("grep Groups: /proc/1/status"); !strings.HasSuffix(got, "3000") {
			t.Errorf("%s", got)
		}
		if got := r.output("ls /image/bin/sh"); got != "/image/bin/sh" {
			t.Errorf("the image is not mounted: %s", got)
		}
	})
	t.Run("containerd1", func(t *testing.T) {
		client := dial(t, testenv.OldContainerd(t))
		_, err := client.RunSandbox(t.Context(), prepare(t, client, "", strict).sandbox)
		var refused *podmill.ReasonError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), "supplementalGroupsPolicy Strict: the runtime, containerd 1.") {
			t.Errorf("error %v", err)
		}
		r := prepare(t, client, "", mounted)
		id, err := client.RunSandbox(t.Context(), r.sandbox)
		if err != nil {
			t.Fatal(err)
		}
		r.spec.SandboxID = id
		if _, err := client.CreateContainer(t.Context(), r.spec); err == nil {
			t.Error("an image to be mounted was left out")
		}
	})
}

// What is to be read-only all the way down is so, with what is mounted below, and the runtime says so; an older runtime refuses it.
func TestRecursiveReadOnly(t *testing.T) {
	t.Parallel()
	testenv.Root(t)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", filepath.Join(dir, "below"), "tmpfs", 0, "size=64k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(filepath.Join(dir, "below"), unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	mounted := func(c *podmill.ContainerSpec) {
		c.Mounts = []podmill.Mount{
			{ContainerPath: "/all", HostPath: dir, ReadOnly: true, RecursiveReadOnly: corev1.RecursiveReadOnlyEnabled},
			{ContainerPath: "/top", HostPath: dir, ReadOnly: true},
		}
	}
	r := start(t, dial(t, testenv.Containerd(t)), "exec sleep 1000", mounted)
	for path, want := range map[string]string{"/all/file": "no", "/all/below/file": "no", "/top/file": "no", "/top/below/file": "yes"} {
		if got := r.output("(echo x > " + path + ") 2>/dev/null && echo yes || echo no"); got != want {
			t.Errorf("%s can be written: %s, want %s", path, got, want)
		}
	}
	seen, err := r.client.InspectPod(t.Context(), r.sandbox.Pod.UID)
	if err != nil || !slices.Equal(seen.Containers[0].ReadOnlyBelow, []string{"/all"}) {
		t.Errorf("the runtime says %v, %v", seen.Containers[0].ReadOnlyBelow, err)
	}
	old := dial(t, testenv.OldContainerd(t))
	refuses := prepare(t, old, "", mounted)
	if refuses.spec.SandboxID, err = old.RunSandbox(t.Context(), refuses.sandbox); err != nil {
		t.Fatal(err)
	}
	if _, err := old.CreateContainer(t.Context(), refuses.spec); err == nil || !strings.Contains(err.Error(), "recursiveReadOnly of the mount at /all") {
		t.Errorf("the old runtime answers %v", err)
	}
}

// A command whose time is over is ended by the runtime, and not left to run.
func TestCommandEndsWithItsTime(t *testing.T) {
	t.Parallel()
	eachContainerd(t, func(t *testing.T, endpoint string) {
		r := start(t, dial(t, endpoint), "exec sleep 1000", nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := r.client.Exec(ctx, r.id, []string{"sleep", "4711"})
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, podmill.ErrNotFound) {
			t.Errorf("error %v", err)
		}
		const count = "grep -sl '^sleep.4711' /proc/[0-9]*/cmdline | wc -l"
		for deadline := time.Now().Add(time.Minute); r.output(count) != "0"; {
			if time.Now().After(deadline) {
				t.Fatal("the command still runs")
			}
		}
	})
}

// Root in a user namespace of the pod's own is nobody on the machine, and yet root in the pod's volumes.
func TestUserNamespace(t *testing.T) {
	t.Parallel()
	volume := t.TempDir()
	own := func(c *podmill.ContainerSpec) {
		ids := []podmill.IDMapping{{Container: 0, Host: 1 << 20, Length: 1 << 16}}
		c.Sandbox.IDMappings = &podmill.IDMappings{UIDs: ids, GIDs: ids}
		c.Mounts = []podmill.Mount{{ContainerPath: "/volume", HostPath: volume, IDMappings: c.Sandbox.IDMappings}}
	}
	r := start(t, dial(t, testenv.Containerd(t)), "exec sleep 1000", own)
	if got := strings.Fields(r.output("cat /proc/1/uid_map")); !slices.Equal(got, []string{"0", "1048576", "65536"}) {
		t.Errorf("its users are %v", got)
	}
	r.output("touch /volume/file")
	info, err := os.Stat(filepath.Join(volume, "file"))
	if err != nil {
		t.Fatal(err)
	}
	if s := fmt.Sprintf("%+v", info.Sys()); !strings.Contains(s, "Uid:0 ") {
		t.Errorf("its file is %s", s)
	}
	old := dial(t, testenv.OldContainerd(t))
	_, err = old.RunSandbox(t.Context(), prepare(t, old, "", own).sandbox)
	if refused := new(podmill.ReasonError); !errors.As(err, &refused) || !strings.Contains(err.Error(), "hostUsers") {
		t.Errorf("error %v", err)
	}
}

// A container with a target sees the processes of the other one, and no one else does.
func TestTargetsProcesses(t *testing.T) {
	t.Parallel()
	eachContainerd(t, func(t *testing.T, endpoint string) {
		client := dial(t, endpoint)
		r := start(t, client, "exec sleep 4711", nil)
		look := *r.spec
		look.Container, look.TargetID, look.LogPath = &corev1.Container{Name: "look", Image: image}, r.id, "look.log"
		look.Command = []string{"sh", "-c", "exec sleep 1000"}
		id, err := client.CreateContainer(t.Context(), &look)
		if err != nil {
			t.Fatal(err)
		}
		if err := client.StartContainer(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		other := &running{T: t, client: client, id: id}
		if got := other.output("tr '\\0' ' ' < /proc/1/cmdline"); got != "sleep 4711" {
			t.Errorf("its first process is %q", got)
		}
	})
}

package cgroup_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/containerd/cgroups/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill/cgroup"
	"github.com/podmill/podmill/internal/testenv"
	. "github.com/podmill/podmill/podmilltest"
)

// file is one setting of a cgroup in both versions.
type file struct{ v1, v2 string }

var (
	shares = file{"cpu/%s/cpu.shares", "%s/cpu.weight"}
	quota  = file{"cpu/%s/cpu.cfs_quota_us", "%s/cpu.max"}
	memory = file{"memory/%s/memory.limit_in_bytes", "%s/memory.max"}
	pids   = file{"pids/%s/pids.max", "%s/pids.max"}
	procs  = file{"memory/%s/cgroup.procs", "%s/cgroup.procs"}
)

func (f file) path(group string) string {
	if cgroups.Mode() == cgroups.Unified {
		return "/sys/fs/cgroup/" + fmt.Sprintf(f.v2, group)
	}
	return "/sys/fs/cgroup/" + fmt.Sprintf(f.v1, group)
}

// want fails the test unless the file says v1, or v2 on cgroup v2.
func (f file) want(t *testing.T, group, v1, v2 string) {
	t.Helper()
	data, err := os.ReadFile(f.path(group))
	if err != nil {
		t.Error(err)
		return
	}
	want := v1
	if cgroups.Mode() == cgroups.Unified {
		want = v2
	}
	if got := strings.TrimSpace(string(data)); got != want {
		t.Errorf("%s is %s, want %s", f.path(group), got, want)
	}
}

// left returns the directories with that name in any hierarchy.
func left(t *testing.T, group string) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"/sys/fs/cgroup" + group, "/sys/fs/cgroup/*" + group} {
		dirs, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, dirs...)
	}
	return found
}

func manager(t *testing.T, root string) *cgroup.Manager {
	t.Helper()
	m, err := cgroup.New(root)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func ensure(t *testing.T, m *cgroup.Manager, pod *corev1.Pod) string {
	t.Helper()
	parent, err := m.EnsureCgroup(t.Context(), pod)
	if err != nil {
		t.Fatal(err)
	}
	return parent
}

var (
	guaranteed = Pod("guaranteed", Container("a", "x", asks("500m", "500m", "64Mi", "64Mi")))
	burstable  = Pod("burstable", Container("a", "x", asks("250m", "", "", "")))
	bestEffort = Pod("best-effort", Container("a", "x"))
)

func TestCgroupsOfPods(t *testing.T) {
	root := testenv.CgroupRoot(t)
	m := manager(t, root)
	g, b, e := ensure(t, m, guaranteed), ensure(t, m, burstable), ensure(t, m, bestEffort)
	if want := root + "/kubepods/burstable/pod" + string(burstable.UID); b != want {
		t.Errorf("parent %s, want %s", b, want)
	}
	shares.want(t, g, "512", "59")
	quota.want(t, g, "50000", "50000 100000")
	memory.want(t, g, "67108864", "67108864")
	shares.want(t, b, "256", "35")
	quota.want(t, b, "-1", "max 100000")
	memory.want(t, b, "9223372036854771712", "max")
	shares.want(t, e, "2", "1")
	shares.want(t, root+"/kubepods/burstable", "256", "35")
	shares.want(t, root+"/kubepods/besteffort", "2", "1")

	// The limit goes up, and then away.
	ensure(t, m, Edit(guaranteed, func(pod *corev1.Pod) { asks("500m", "500m", "128Mi", "128Mi")(&pod.Spec.Containers[0]) }))
	memory.want(t, g, "134217728", "134217728")
	free := Pod("guaranteed", Container("a", "x", asks("500m", "", "", "")))
	free.Status.QOSClass = corev1.PodQOSGuaranteed
	ensure(t, m, free)
	memory.want(t, g, "9223372036854771712", "max")
	quota.want(t, g, "-1", "max 100000")

	// A runtime on v1 makes directories on v2 as well, where that is mounted beside.
	if _, err := os.Stat("/sys/fs/cgroup/unified"); err == nil {
		if err := os.MkdirAll("/sys/fs/cgroup/unified"+g+"/container", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // it is idempotent
		for _, pod := range []*corev1.Pod{guaranteed, burstable, bestEffort} {
			if err := m.RemoveCgroup(t.Context(), pod.UID); err != nil {
				t.Fatal(err)
			}
		}
	}
	if found := left(t, root); len(found) > 0 {
		t.Errorf("left behind: %v", found)
	}
}

// A pod has so many processes as it may have, and as many as it likes when an agent comes that does not say.
func TestPIDsOfAPod(t *testing.T) {
	root := testenv.CgroupRoot(t)
	m, err := cgroup.New(root, cgroup.WithMaxPIDs(77))
	if err != nil {
		t.Fatal(err)
	}
	b := ensure(t, m, burstable)
	pids.want(t, b, "77", "77")
	free := manager(t, root)
	ensure(t, free, burstable)
	pids.want(t, b, "max", "max")
	if err := free.RemoveCgroup(t.Context(), burstable.UID); err != nil {
		t.Fatal(err)
	}
}

// What is reserved for pods is so in the cgroups above them, too, as long as they are there (KEP-2570).
func TestMemoryIsReserved(t *testing.T) {
	if cgroups.Mode() != cgroups.Unified {
		t.Skip("cgroup v1 reserves nothing")
	}
	root := testenv.CgroupRoot(t)
	m, err := cgroup.New(root, cgroup.WithMemoryReservation())
	if err != nil {
		t.Fatal(err)
	}
	least, low := file{v2: "%s/memory.min"}, file{v2: "%s/memory.low"}
	want := func(group, min, soft string) {
		t.Helper()
		least.want(t, group, "", min)
		low.want(t, group, "", soft)
	}
	soft := Pod("soft", Container("a", "x", asks("", "", "32Mi", "")))
	g, s := ensure(t, m, guaranteed), ensure(t, m, soft)
	want(g, "67108864", "0")
	want(s, "0", "33554432")
	for _, above := range []string{root, root + "/kubepods"} {
		want(above, "67108864", "33554432")
	}
	want(root+"/kubepods/burstable", "0", "33554432")
	for _, pod := range []*corev1.Pod{guaranteed, soft} {
		if err := m.RemoveCgroup(t.Context(), pod.UID); err != nil {
			t.Fatal(err)
		}
		if pod == guaranteed {
			want(root+"/kubepods", "0", "33554432")
		}
	}
}

// enter starts a process in a cgroup below a pod's, as a runtime does, and returns what ends it.
func enter(t *testing.T, group string) (end func()) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(procs.path(group)), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "/proc/self/exe", "-test.run=^TestSleeper$")
	cmd.Env = append(os.Environ(), "SLEEPER=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(procs.path(group), []byte(strconv.Itoa(cmd.Process.Pid)), 0o600); err != nil {
		t.Error(err)
	}
	return func() { _ = stdin.Close(); _ = cmd.Wait() }
}

// TestSleeper is the process of the tests here: it lasts until its input ends.
func TestSleeper(*testing.T) {
	if os.Getenv("SLEEPER") != "" {
		_, _ = os.Stdin.Read(make([]byte, 1))
	}
}

func TestACgroupWithAProcessIsNotRemoved(t *testing.T) {
	m := manager(t, testenv.CgroupRoot(t))
	group := ensure(t, m, burstable)
	end := enter(t, group+"/container/nested")
	err := m.RemoveCgroup(t.Context(), burstable.UID)
	if err == nil || !strings.Contains(err.Error(), "still holds processes") || !strings.Contains(err.Error(), string(burstable.UID)) {
		t.Errorf("got %v", err)
	}
	end()
	if err := m.RemoveCgroup(t.Context(), burstable.UID); err != nil {
		t.Error(err)
	}
	if found := left(t, group); len(found) > 0 {
		t.Errorf("left behind: %v", found)
	}
}

func TestCleanupAfterARestart(t *testing.T) {
	root := testenv.CgroupRoot(t)
	before := manager(t, root)
	stale, kept := ensure(t, before, burstable), ensure(t, before, guaranteed)
	m := manager(t, root)
	if err := m.Cleanup(t.Context(), func(uid types.UID) bool { return uid == guaranteed.UID }); err != nil {
		t.Fatal(err)
	}
	if found := left(t, stale); len(found) > 0 {
		t.Errorf("not cleaned up: %v", found)
	}
	memory.want(t, kept, "67108864", "67108864")
	if err := before.RemoveCgroup(t.Context(), guaranteed.UID); err != nil {
		t.Fatal(err)
	}
}

func TestTheRootIsRemovedOnlyByWhoMadeIt(t *testing.T) {
	root := testenv.CgroupRoot(t)
	outer := manager(t, root)
	ensure(t, outer, guaranteed)
	inner := manager(t, root) // the root is there: it is somebody else's
	ensure(t, inner, burstable)
	if err := inner.RemoveCgroup(t.Context(), burstable.UID); err != nil {
		t.Fatal(err)
	}
	if len(left(t, root)) == 0 {
		t.Error("somebody else's root was removed")
	}
	if err := outer.RemoveCgroup(t.Context(), guaranteed.UID); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkEnsure compares a pod that has what it needs with a bare look at its directories.
func BenchmarkEnsure(b *testing.B) {
	root := testenv.CgroupRoot(b)
	m, err := cgroup.New(root)
	if err != nil {
		b.Fatal(err)
	}
	parent, err := m.EnsureCgroup(b.Context(), burstable)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("baseline=stat", func(b *testing.B) {
		dirs, _ := filepath.Glob("/sys/fs/cgroup/*" + parent)
		for b.Loop() {
			for _, dir := range dirs {
				_, _ = os.Stat(dir)
			}
		}
	})
	b.Run("ensure", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = m.EnsureCgroup(b.Context(), burstable)
		}
	})
}

func ExampleLimitsOf() {
	pod := Pod("default/web", Container("server", "httpd", asks("250m", "500m", "", "64Mi")))
	l := cgroup.LimitsOf(pod, 100000)
	fmt.Println(l.CPUShares, l.CPUQuota, l.Memory)
	// Output: 256 50000 67108864
}

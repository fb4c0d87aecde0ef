package syncpod

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
)

// onDisk is a syncer that does nothing but keep directories.
func onDisk(t *testing.T) *Syncer {
	t.Helper()
	dir := t.TempDir()
	s := onRoot(filepath.Join(dir, "lib"))
	s.logRoot = filepath.Join(dir, "log")
	return s
}

func onRoot(root string) *Syncer {
	return &Syncer{options: options{root: root}, pods: map[types.UID]*memory{}, keepers: map[types.UID]*keeper{}}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte("precious"), 0o600))
}

// tree lists a directory, links with what they point to.
func tree(t *testing.T, dir string) (out []string) {
	t.Helper()
	must(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || path == dir {
			return err
		}
		line := strings.TrimPrefix(path, dir+"/")
		if target, err := os.Readlink(path); err == nil {
			line += " -> " + strings.ReplaceAll(target, dir, "ROOT")
		} else if info.IsDir() {
			line += "/"
		}
		out = append(out, line)
		return nil
	}))
	return out
}

func TestTheLayoutIsTheKubelets(t *testing.T) {
	s := onDisk(t)
	pod := podmilltest.Pod("shop/cart", podmilltest.UID("u-1"), podmilltest.InitContainer("migrate", "i"), podmilltest.Container("web", "i"))
	must(t, s.makeDirectories(pod))
	must(t, s.makeDirectories(pod))
	if _, err := s.writeHosts(pod, &podmill.SandboxSpec{Hostname: "cart"}, []string{"10.0.0.7"}); err != nil {
		t.Fatal(err)
	}
	must(t, s.linkLog(pod, "web", "c0ffee", 2))
	must(t, s.linkLog(pod, "web", "c0ffee", 2))
	want := []string{
		"lib/", "lib/pods/", "lib/pods/u-1/", "lib/pods/u-1/etc-hosts",
		"log/", "log/containers/", "log/containers/cart_shop_web-c0ffee.log -> ROOT/log/pods/shop_cart_u-1/web/2.log",
		"log/pods/", "log/pods/shop_cart_u-1/", "log/pods/shop_cart_u-1/migrate/", "log/pods/shop_cart_u-1/web/",
	}
	if diff := cmp.Diff(want, tree(t, filepath.Dir(s.root))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNamesThatLeadElsewhere(t *testing.T) {
	s := onDisk(t)
	for _, uid := range []types.UID{"", ".", "..", "../../etc", "a/b", `a\b`, "/etc", types.UID(strings.Repeat("x", 300))} {
		if dir, err := s.podDir(uid); err == nil {
			t.Errorf("UID %q has the directory %s", uid, dir)
		}
	}
	if err := s.makeDirectories(podmilltest.Pod("shop/cart", podmilltest.Container("../../up", "i"))); err == nil {
		t.Error("a container's name leads up")
	}
	if err := s.removeDirectory(".."); err == nil {
		t.Error("a directory that is not a pod's is removed")
	}
}

// The link's name is cut in the middle, so that links of two containers of pods with long names stay two.
func TestLinksOfLongNames(t *testing.T) {
	s := onDisk(t)
	pod := podmilltest.Pod("shop/"+strings.Repeat("p", 250), podmilltest.Container("web", "i"))
	first, err := s.linkTo(pod, "web", strings.Repeat("a", 64))
	must(t, err)
	second, err := s.linkTo(pod, "web", strings.Repeat("b", 64))
	must(t, err)
	if len(filepath.Base(first)) != 255 || first == second {
		t.Errorf("links %s and %s", filepath.Base(first), filepath.Base(second))
	}
}

func TestRemovedContainersTakeTheirLogsAlong(t *testing.T) {
	s := onDisk(t)
	pod := podmilltest.Pod("shop/cart", podmilltest.UID("u-1"), podmilltest.Container("web", "i"))
	must(t, s.makeDirectories(pod))
	logs := filepath.Join(s.logRoot, "pods", "shop_cart_u-1", "web")
	for _, name := range []string{"1.log", "1.log.20260102-030405", "1.log.20260102-030400.gz", "10.log", "2.log", "notes"} {
		write(t, filepath.Join(logs, name))
	}
	must(t, s.linkLog(pod, "web", "old", 1))
	must(t, s.linkLog(pod, "web", "new", 2))
	for range 2 {
		must(t, s.removeLogs(pod, &Remove{ID: "old", Name: "web", Attempt: 1}))
	}
	if diff := cmp.Diff([]string{"10.log", "2.log", "notes"}, tree(t, logs)); diff != "" {
		t.Error(diff)
	}
	if got := tree(t, filepath.Join(s.logRoot, "containers")); len(got) != 1 || !strings.HasPrefix(got[0], "cart_shop_web-new.log") {
		t.Errorf("links: %v", got)
	}
}

func TestHosts(t *testing.T) {
	s := onDisk(t)
	pod := podmilltest.Pod("shop/cart", podmilltest.UID("u-1"), func(p *corev1.Pod) {
		p.Spec.HostAliases = []corev1.HostAlias{{IP: "192.0.2.1", Hostnames: []string{"db", "db.shop"}}}
	})
	must(t, s.makeDirectories(pod))
	path, err := s.writeHosts(pod, &podmill.SandboxSpec{Hostname: "cart"}, []string{"10.0.0.7", "fd00::7"})
	must(t, err)
	b, err := os.ReadFile(path)
	must(t, err)
	for _, line := range []string{"# Kubernetes-managed hosts file.", "127.0.0.1\tlocalhost", "10.0.0.7\tcart", "fd00::7\tcart", "192.0.2.1\tdb\tdb.shop"} {
		if !strings.Contains(string(b), line+"\n") {
			t.Errorf("no line %q in\n%s", line, b)
		}
	}
	before, err := os.Stat(path)
	must(t, err)
	must(t, os.Chtimes(path, before.ModTime().Add(-time.Hour), before.ModTime().Add(-time.Hour)))
	_, err = s.writeHosts(pod, &podmill.SandboxSpec{Hostname: "cart"}, []string{"10.0.0.7", "fd00::7"})
	must(t, err)
	if after, err := os.Stat(path); err != nil || !after.ModTime().Before(before.ModTime()) {
		t.Error("what has not changed is written again")
	}

	pod.Spec.HostNetwork = true
	path, err = s.writeHosts(pod, &podmill.SandboxSpec{}, nil)
	must(t, err)
	if b, err := os.ReadFile(path); err != nil || !strings.Contains(string(b), "localhost") || !strings.Contains(string(b), "db.shop") {
		t.Errorf("in the host's network: %v\n%s", err, b)
	}
	pod.Spec.HostAliases = nil
	if path, err := s.writeHosts(pod, &podmill.SandboxSpec{}, nil); path != "" || err != nil {
		t.Errorf("a pod in the host's network that adds nothing has %q, %v", path, err)
	}
}

func TestDeadlineOnlyComesNearer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := onDisk(t)
		at := func(seconds int) time.Time { return time.Now().Add(time.Duration(seconds) * time.Second) }
		want := podmill.Termination{Deadline: at(30), GracePeriodSeconds: 30}
		keep := func(what string, in podmill.Termination) {
			t.Helper()
			k, err := onRoot(s.root).keeper("u-1") // as an agent that was restarted
			must(t, err)
			out, err := k.terminate(in)
			must(t, err)
			if diff := cmp.Diff(want, out); diff != "" {
				t.Errorf("%s: %s", what, diff)
			}
		}
		first := want
		keep("first", first)
		want.Reason, want.Message = "Evicted", "memory"
		keep("a later deadline with the first reason", podmill.Termination{Deadline: at(300), GracePeriodSeconds: 300, Reason: "Evicted", Message: "memory"})
		want.Deadline, want.GracePeriodSeconds = at(1), 1
		keep("an earlier deadline, and another reason", podmill.Termination{Deadline: at(1), GracePeriodSeconds: 1, Reason: "Preempting"})
		keep("after a restart", podmill.Termination{Deadline: at(60), GracePeriodSeconds: 60})
		if got := tree(t, s.root); len(got) != 3 {
			t.Errorf("something else is left: %v", got)
		}

		// What is there and cannot be read is replaced; where nothing can be kept, the termination goes on all the same.
		must(t, os.WriteFile(filepath.Join(s.root, "pods", "u-1", "lifecycle.json"), []byte("{"), 0o600))
		want = first
		keep("after a broken file", first)
		s.root = filepath.Join(s.root, "pods", "u-1", "lifecycle.json")
		k, err := onRoot(s.root).keeper("u-2")
		must(t, err)
		for range 2 { // it is tried again
			if got, err := k.terminate(first); got != first || err == nil {
				t.Errorf("where nothing can be kept: %+v, %v", got, err)
			}
		}
	})
}

// The clock was set while no agent ran, or will be: a deadline that was kept is never further away than its grace from the restart on, and a second restart does not give
// that again.
func TestAKeptDeadlineTrustsNoClock(t *testing.T) {
	for name, clock := range map[string]struct{ kept, left time.Duration }{
		"as it was":      {10 * time.Second, 10 * time.Second},
		"set back":       {time.Hour, 30 * time.Second},
		"set forward":    {-time.Hour, 0},
		"set by decades": {-30 * 365 * 24 * time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := onDisk(t)
				path := filepath.Join(s.root, "pods", "u-1", keptFile)
				must(t, writeKept(path, &kept{Termination: &podmill.Termination{Deadline: time.Now().Add(clock.kept), GracePeriodSeconds: 30}}))
				restart := func() podmill.Termination {
					k, err := onRoot(s.root).keeper("u-1")
					must(t, err)
					got, err := k.terminate(podmill.Termination{Deadline: time.Now().Add(300 * time.Second), GracePeriodSeconds: 300})
					must(t, err)
					return got
				}
				deadline := time.Now().Add(clock.left)
				for range 2 {
					if got := restart(); !got.Deadline.Equal(deadline) || got.GracePeriodSeconds != 30 {
						t.Errorf("%+v, want the deadline %v", got, deadline)
					}
					time.Sleep(clock.left / 2)
				}
			})
		})
	}
	// Real time alone knows the two clocks apart.
	k := keeper{kept: kept{Termination: &podmill.Termination{Deadline: time.Now().Add(10 * time.Second).Round(0), GracePeriodSeconds: 30}}}
	if k.bound(time.Now()); !strings.Contains(k.Termination.Deadline.String(), " m=") {
		t.Errorf("the deadline %v heeds a clock that is set from now on", k.Termination.Deadline)
	}
}

// B002, for what is left of pods that nobody knows.
func TestCleanup(t *testing.T) {
	s := onDisk(t)
	canary := filepath.Join(t.TempDir(), "canary")
	write(t, filepath.Join(canary, "data"))
	pods, logs := filepath.Join(s.root, "pods"), filepath.Join(s.logRoot, "pods")
	must(t, os.MkdirAll(filepath.Join(pods, "kept", "volumes"), 0o750))
	write(t, filepath.Join(logs, "shop_kept_kept", "web", "0.log"))
	// Only empty directories, and what we write ourselves.
	must(t, os.MkdirAll(filepath.Join(pods, "empty", "volumes", "kubernetes.io~empty-dir", "data"), 0o750))
	write(t, filepath.Join(pods, "empty", "etc-hosts"))
	write(t, filepath.Join(pods, "empty", "lifecycle.json"))
	// A file of which nobody knows, beside things that may go.
	write(t, filepath.Join(pods, "stray", "volumes", "x~y", "z", "file"))
	write(t, filepath.Join(pods, "stray", "volumes", "etc-hosts"))
	write(t, filepath.Join(pods, "stray", "etc-hosts"))
	// Links, in the directory and in its place.
	must(t, os.MkdirAll(filepath.Join(pods, "linked", "volumes"), 0o750))
	must(t, os.Symlink(canary, filepath.Join(pods, "linked", "volumes", "link")))
	must(t, os.Symlink(canary, filepath.Join(pods, "link")))
	// Logs, links to them, and links that are none of ours.
	write(t, filepath.Join(logs, "shop_gone_gone", "web", "0.log"))
	must(t, os.Symlink(canary, filepath.Join(logs, "shop_gone_gone", "web", "link.log")))
	write(t, filepath.Join(logs, "foreign", "file"))
	links := filepath.Join(s.logRoot, "containers")
	must(t, os.MkdirAll(links, 0o755))
	must(t, os.Symlink(filepath.Join(logs, "shop_gone_gone", "web", "0.log"), filepath.Join(links, "gone.log")))
	must(t, os.Symlink(filepath.Join(logs, "shop_kept_kept", "web", "0.log"), filepath.Join(links, "kept.log")))
	must(t, os.Symlink(filepath.Join(canary, "none"), filepath.Join(links, "foreign.log")))

	err := s.Cleanup(t.Context(), func(uid types.UID) bool { return uid == "kept" })
	if err == nil || !strings.Contains(err.Error(), filepath.Join(pods, "stray", "volumes", "x~y", "z", "file")+" is not ours to remove") ||
		!strings.Contains(err.Error(), filepath.Join(pods, "stray", "volumes", "etc-hosts")) {
		t.Errorf("error = %v, want the stray files named", err)
	}
	want := []string{
		"lib/", "lib/pods/", "lib/pods/kept/", "lib/pods/kept/volumes/",
		"lib/pods/stray/", "lib/pods/stray/volumes/", "lib/pods/stray/volumes/etc-hosts",
		"lib/pods/stray/volumes/x~y/", "lib/pods/stray/volumes/x~y/z/", "lib/pods/stray/volumes/x~y/z/file",
		"log/", "log/containers/", "log/containers/foreign.log -> " + filepath.Join(canary, "none"),
		"log/containers/kept.log -> ROOT/log/pods/shop_kept_kept/web/0.log",
		"log/pods/", "log/pods/foreign/", "log/pods/foreign/file", "log/pods/shop_kept_kept/", "log/pods/shop_kept_kept/web/", "log/pods/shop_kept_kept/web/0.log",
	}
	if diff := cmp.Diff(want, tree(t, filepath.Dir(s.root))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if b, err := os.ReadFile(filepath.Join(canary, "data")); err != nil || string(b) != "precious" {
		t.Errorf("the canary: %q, %v", b, err)
	}

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Cleanup(ended, func(types.UID) bool { return false }); err == nil {
		t.Error("an ended context ends nothing")
	}
	nowhere := &Syncer{}
	must(t, nowhere.Cleanup(t.Context(), func(types.UID) bool { return false }))
	must(t, onDisk(t).Cleanup(t.Context(), func(types.UID) bool { return false }))
}

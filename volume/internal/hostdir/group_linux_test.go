package hostdir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/podmill/podmill/internal/testenv"
	"github.com/podmill/podmill/volume/internal/canary"
	"github.com/podmill/podmill/volume/internal/patience"
)

// ownedBy returns the group and mode of a file, not of what a link leads to.
func ownedBy(t testing.TB, path string) string {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Lstat(path, &st))
	return fmt.Sprintf("%d %o", st.Gid, st.Mode&0o7777)
}

func TestChangeGroup(t *testing.T) {
	root, dir := open(t)
	outside := canary.Tree(t) // neither behind a link nor behind a mount
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.MkdirAll(at("a/b"), 0o700), os.Mkdir(at("mount"), 0o755), os.WriteFile(at("a/b/file"), nil, 0o600), os.Chmod(at("a/b/file"), 0o4711),
		unix.Mkfifo(at("fifo"), 0o600), os.Symlink(outside, at("link")), os.Symlink(filepath.Join(outside, "file"), at("a/link")), os.Chmod(dir, 0o700))
	bind(t, outside, at("mount"))
	must(t, ChangeGroup(t.Context(), root, 2000, false))
	for name, want := range map[string]string{
		"": "2000 2770", "a": "2000 2770", "a/b": "2000 2770", "a/b/file": "2000 771", "fifo": "2000 660", "link": "2000 777", "a/link": "2000 777",
	} {
		if got := ownedBy(t, at(name)); got != want {
			t.Errorf("%q is %s, want %s", name, got, want)
		}
	}
}

// With OnRootMismatch the directory itself tells whether all in it was done, and so it is done last.
func TestChangeGroupOnRootMismatch(t *testing.T) {
	testenv.Root(t)
	root, dir := open(t)
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for _, tt := range []struct {
		mode os.FileMode
		gid  int
		done bool
	}{
		{0o770 | os.ModeSetgid, 2000, true}, {0o777 | os.ModeSetgid, 2000, true},
		{0o770, 2000, false}, {0o750 | os.ModeSetgid, 2000, false}, {0o760 | os.ModeSetgid, 2000, false}, {0o770 | os.ModeSetgid, 1, false},
	} {
		must(t, os.Chown(file, -1, 0), os.Chown(dir, -1, tt.gid), os.Chmod(dir, tt.mode))
		must(t, ChangeGroup(t.Context(), root, 2000, true))
		if done := ownedBy(t, file) == "0 600" || ownedBy(t, file) == "0 660"; done != tt.done {
			t.Errorf("%v of group %d: taken for done: %v, want %v", tt.mode, tt.gid, done, tt.done)
		}
	}
}

// What cannot be changed stays as it is, and keeps no pod from starting. It is logged, on one line.
func TestChangeGroupOfWhatCannotBeChanged(t *testing.T) {
	testenv.Root(t)
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700), os.WriteFile(filepath.Join(dir, "sub/file"), nil, 0o600))
	bind(t, dir, dir)
	must(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	var said []string
	log := funcr.New(func(_, args string) { said = append(said, args) }, funcr.Options{})
	must(t, ChangeGroup(logr.NewContext(t.Context(), log), root, 2000, false))
	if len(said) != 1 || !strings.Contains(said[0], filepath.Join(dir, "sub/file")) || !strings.Contains(said[0], `"failed"=3`) {
		t.Errorf("said %q, want one line that names the first of three", said)
	}
}

func TestChangeGroupEndsWithItsContext(t *testing.T) {
	testenv.Root(t)
	root, dir := open(t)
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := ChangeGroup(ctx, root, 2000, false); !errors.Is(err, context.Canceled) || strings.HasPrefix(ownedBy(t, filepath.Join(dir, "file")), "2000") {
		t.Errorf("error %v, the file is %s", err, ownedBy(t, filepath.Join(dir, "file")))
	}
}

// slow is a context of somebody for whom each file takes a while.
type slow struct{ context.Context }

func (s slow) Err() error {
	time.Sleep(10 * time.Second)
	return s.Context.Err()
}

// A walk may take any time, as long as it goes on.
func TestChangeGroupKeepsPatience(t *testing.T) {
	testenv.Root(t)
	root, dir := open(t)
	must(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	for i := range 100 {
		must(t, os.WriteFile(filepath.Join(dir, "sub", strconv.Itoa(i)), nil, 0o600))
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := patience.With(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		if err := ChangeGroup(slow{ctx}, root, 2000, false); err != nil || time.Since(start) < 1000*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

// What is as it should be is not written again: over a network each write is a journey.
func TestChangeGroupWritesOnce(t *testing.T) {
	testenv.Root(t)
	root, dir := open(t)
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	changed := func() (times []unix.Timespec) {
		for _, path := range []string{dir, filepath.Join(dir, "file")} {
			var st unix.Stat_t
			must(t, unix.Stat(path, &st))
			times = append(times, st.Ctim)
		}
		return times
	}
	must(t, ChangeGroup(t.Context(), root, 2000, false))
	before := changed()
	time.Sleep(20 * time.Millisecond) // longer than a tick of the file system's clock
	must(t, ChangeGroup(t.Context(), root, 2000, false))
	if diff := cmp.Diff(before, changed()); diff != "" {
		t.Errorf("written again (-before +after):\n%s", diff)
	}
}

// On the way down a tree, one directory a level is open.
func TestChangeGroupOpensOneDirectoryALevel(t *testing.T) {
	testenv.Root(t)
	const depth = 200
	root, dir := open(t)
	must(t, os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", depth)), 0o700))
	opened, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	var before unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	few := before
	few.Cur = uint64(len(opened) + depth + 20)
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &few))
	err = ChangeGroup(t.Context(), root, 2000, false)
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before), err)
}

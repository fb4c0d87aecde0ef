package hostdir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podmill/podmill/internal/testenv"
	"github.com/podmill/podmill/volume/internal/canary"
)

// bind mounts from on at until the test ends.
func bind(t *testing.T, from, at string) {
	t.Helper()
	testenv.Root(t)
	must(t, unix.Mount(from, at, "", unix.MS_BIND, ""))
	t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
}

func TestRemoveTreeDoesNotCrossMounts(t *testing.T) { // B002
	root, dir := open(t)
	outside := canary.Tree(t)
	must(t, os.MkdirAll(filepath.Join(dir, "v/a/mount"), 0o755), os.MkdirAll(filepath.Join(dir, "v/b/c"), 0o755),
		os.WriteFile(filepath.Join(dir, "v/a/file"), nil, 0o644))
	bind(t, outside, filepath.Join(dir, "v/a/mount"))
	bind(t, filepath.Join(outside, "file"), filepath.Join(dir, "v/a/file"))
	err := RemoveTree(root, "v")
	if !errors.Is(err, errMount) || !strings.Contains(err.Error(), filepath.Join(dir, "v/a/")) {
		t.Errorf("error %v, want one that names the mount", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "v/b")); !os.IsNotExist(err) {
		t.Errorf("v/b, where nothing is mounted, is still there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "v/a/mount/sub/file")); err != nil {
		t.Errorf("the mount is gone: %v", err)
	}
	if err := RemoveTree(root, "v"); err == nil {
		t.Error("the second attempt found nothing amiss")
	}
}

func TestRemoveTreeOfDeepNesting(t *testing.T) {
	root, dir := open(t)
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	must(t, err)
	for depth := range 500 { // more than may be open
		name := "d"
		if depth == 0 {
			name = "v"
		}
		must(t, unix.Mkdirat(fd, name, 0o755))
		next, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		must(t, err, unix.Mkdirat(fd, "removed-1", 0o755), unix.Close(fd))
		fd = next
	}
	must(t, unix.Close(fd))
	var limit unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	few := limit
	few.Cur = 200
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &few))
	defer func() { must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)) }()
	must(t, RemoveTree(root, "v"))
	if _, err := os.Lstat(filepath.Join(dir, "v")); !os.IsNotExist(err) {
		t.Errorf("v is still there: %v", err)
	}
}

// CVE-2021-25741: a directory is exchanged for a link while it is worked on.
func TestExchangedLinksAreNotFollowed(t *testing.T) {
	root, dir := open(t)
	outside := canary.Tree(t)
	inside := filepath.Join(dir, "inside") // what is in the directory itself is no fairer game
	must(t, os.MkdirAll(filepath.Join(inside, "empty"), 0o755))
	dirFD, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	must(t, err)
	defer unix.Close(dirFD)
	ctx, cancel := context.WithCancel(t.Context())
	var attacker sync.WaitGroup
	attacker.Go(func() {
		for ctx.Err() == nil {
			_ = unix.Renameat2(dirFD, "v", dirFD, "evil", unix.RENAME_EXCHANGE)
		}
	})
	entered := 0
	for i := range 300 {
		fresh := filepath.Join(dir, "fresh")
		must(t, os.MkdirAll(filepath.Join(fresh, "sub"), 0o755), os.WriteFile(filepath.Join(fresh, "file"), nil, 0o644),
			os.Symlink([]string{outside, "inside"}[i%2], filepath.Join(dir, "evil")), os.Rename(fresh, filepath.Join(dir, "v")))
		for range 10 {
			if sub, err := Enter(root, "v"); err == nil {
				entered++
				if _, err := sub.Lstat("empty"); err == nil {
					t.Error("entered what a link leads to")
				}
				_ = sub.Close()
			}
		}
		for RemoveTree(root, "v") != nil || RemoveTree(root, "evil") != nil {
		}
	}
	cancel()
	attacker.Wait()
	if _, err := os.Stat(filepath.Join(inside, "empty")); err != nil {
		t.Error(err)
	}
	if entered == 0 {
		t.Error("the directory was never entered; the test shows nothing")
	}
}

func TestIsMount(t *testing.T) {
	root, dir := open(t)
	must(t, os.Mkdir(filepath.Join(dir, "plain"), 0o755), os.Mkdir(filepath.Join(dir, "bound"), 0o755), os.Symlink("bound", filepath.Join(dir, "link")))
	bind(t, canary.Tree(t), filepath.Join(dir, "bound")) // of the same file system, which device numbers do not tell
	for name, want := range map[string]bool{"plain": false, "bound": true, "link": false} {
		if got, err := IsMount(root, name); err != nil || got != want {
			t.Errorf("IsMount(%s) = %v, %v, want %v", name, got, err, want)
		}
	}
	if _, err := IsMount(root, "missing"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	if err := UnmountTmpfs(root, "bound"); err == nil {
		t.Error("unmounted what somebody else had mounted")
	}
}

func TestTmpfs(t *testing.T) {
	testenv.Root(t)
	root, dir := open(t)
	at := filepath.Join(dir, "m")
	must(t, os.Mkdir(at, 0o755), MountTmpfs(root, "m", Tmpfs{Size: 1 << 20, Mode: 0o777 | os.ModeSetgid, GID: 2000}))
	t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
	var st unix.Stat_t
	var fs unix.Statfs_t
	must(t, unix.Stat(at, &st), unix.Statfs(at, &fs))
	if got := fmt.Sprintf("%o %d %d", st.Mode&0o7777, st.Gid, fs.Blocks*uint64(fs.Bsize)); got != "2777 2000 1048576" {
		t.Errorf("mode, group and size: %s", got)
	}
	busy, err := os.Create(filepath.Join(at, "busy"))
	must(t, err)
	if err := UnmountTmpfs(root, "m"); !errors.Is(err, unix.EBUSY) {
		t.Errorf("unmount while a file is open: %v", err)
	}
	must(t, busy.Close(), UnmountTmpfs(root, "m"))
	if mounted, err := IsMount(root, "m"); err != nil || mounted {
		t.Errorf("still mounted: %v, %v", mounted, err)
	}
}

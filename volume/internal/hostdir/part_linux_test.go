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

func TestOpenPart(t *testing.T) {
	volume, dir := open(t)
	outside := canary.Tree(t)
	must(t, os.MkdirAll(filepath.Join(dir, "a/b"), 0o755), os.WriteFile(filepath.Join(dir, "a/file"), nil, 0o644), unix.Mkfifo(filepath.Join(dir, "fifo"), 0o644))
	for name, target := range map[string]string{
		"in": "a/b", "a/up": "../a/file", "a/b/far": "../../a/../a/b/../file", "out": outside, "up": "..", "a/over": "../../x", "root": "/",
		"self": "self", "nowhere": "gone", "absolute": filepath.Join(dir, "a"), "magic": "/proc/self/cwd",
	} {
		must(t, os.Symlink(target, filepath.Join(dir, name)))
	}
	for path, want := range map[string]string{
		"": ".", ".": ".", "a": "a", "a//b/.": "a/b", "a/file": "a/file", "in": "a/b", "a/up": "a/file", "in/far": "a/file", "fifo": "fifo",
		"out": "", "out/file": "", "up": "", "up/x": "", "a/over": "", "root/etc": "", "self": "", "nowhere": "", "nowhere/x": "",
		"absolute": "", "magic": "", "a/file/x": "", "fifo/x": "", "..": "", "a/../..": "", "/etc": "", strings.Repeat("n", 256): "",
	} {
		part, err := OpenPart(volume, path)
		if want == "" {
			if err == nil {
				t.Errorf("%q was opened", path)
			} else if !strings.Contains(err.Error(), dir) {
				t.Errorf("%q: the error does not say where: %v", path, err)
			}
			continue
		}
		must(t, err)
		at, err := os.Stat(filepath.Join(dir, want))
		must(t, err)
		if is, err := part.Stat(); err != nil || !os.SameFile(is, at) {
			t.Errorf("%q is %v, %v, want %s", path, is, err, want)
		}
		must(t, part.Close())
	}
}

// What is missing is made, as deep as it has to be, also behind a link, and looks as the volume does.
func TestOpenPartMakesDirectories(t *testing.T) {
	volume, dir := open(t)
	must(t, os.Mkdir(filepath.Join(dir, "a"), 0o700), os.Chmod(dir, 0o777|os.ModeSetgid), os.Symlink("a", filepath.Join(dir, "link")))
	before := unix.Umask(0o077)
	defer unix.Umask(before)
	part, err := OpenPart(volume, "link/b/c")
	must(t, err)
	defer part.Close()
	for path, want := range map[string]os.FileMode{"a": 0o700, "a/b": 0o777 | os.ModeSetgid, "a/b/c": 0o777 | os.ModeSetgid} {
		info, err := os.Lstat(filepath.Join(dir, path))
		must(t, err)
		if info.Mode() != os.ModeDir|want {
			t.Errorf("%s has mode %v, want %v", path, info.Mode(), want)
		}
	}
	is, err := part.Stat()
	must(t, err)
	if made, err := os.Stat(filepath.Join(dir, "a/b/c")); err != nil || !os.SameFile(is, made) {
		t.Errorf("what was opened is not what was made: %v", err)
	}
}

// CVE-2017-1002101, CVE-2021-25741: directories and links are exchanged while parts are opened and bound. What comes of it lies in the volume, always.
func TestPartsUnderAttack(t *testing.T) {
	testenv.Root(t)
	const rounds = 100_000
	volume, dir := open(t)
	outside := canary.Tree(t)
	for _, path := range []string{"a/b/c", "x/b/c"} {
		must(t, os.MkdirAll(filepath.Join(dir, path), 0o755))
	}
	must(t, os.Symlink(outside, filepath.Join(dir, "evil")), os.Symlink("..", filepath.Join(dir, "a/evil")))
	places, target := open(t)

	attacked, stop := context.WithCancel(t.Context())
	var attacker sync.WaitGroup
	attacker.Go(func() {
		defer stop()
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer unix.Close(fd)
		for i := range rounds {
			switch i % 2 {
			case 0:
				_ = unix.Renameat2(fd, "a", fd, "evil", unix.RENAME_EXCHANGE)
			case 1:
				_ = unix.Renameat2(fd, "a/b", fd, "a/evil", unix.RENAME_EXCHANGE)
			}
		}
	})
	opened, refused := 0, 0
	for i := 0; attacked.Err() == nil; i++ {
		part, err := OpenPart(volume, []string{"a/b", "a/b/c", "a/evil", "evil/b"}[i%4])
		if err != nil {
			refused++
			continue
		}
		opened++
		at, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", part.Fd()))
		if must(t, err); at != dir && !strings.HasPrefix(at, dir+"/") {
			t.Fatalf("opened %s, which is not in the volume", at)
		}
		if opened%50 == 0 {
			must(t, Bind(part, places, "0"))
			want, err := part.Stat()
			must(t, err)
			if bound, err := os.Stat(filepath.Join(target, "0")); err != nil || !os.SameFile(bound, want) {
				t.Fatalf("what is bound is not what was opened: %v", err)
			}
		}
		must(t, part.Close())
	}
	attacker.Wait()
	must(t, Unbind(places, "0"))
	t.Logf("%d opened, %d refused", opened, refused)
	if opened == 0 || refused == 0 {
		t.Errorf("%d opened and %d refused: the attack shows nothing", opened, refused)
	}
}

func TestBind(t *testing.T) {
	testenv.Root(t)
	volume, dir := open(t)
	places, target := open(t)
	must(t, os.Mkdir(filepath.Join(dir, "dir"), 0o755), os.WriteFile(filepath.Join(dir, "dir/key"), []byte("one"), 0o644))
	bindPart := func(path string) {
		t.Helper()
		part, err := OpenPart(volume, path)
		must(t, err, Bind(part, places, "0"), part.Close())
	}
	mounts := func() int {
		t.Helper()
		all, err := os.ReadFile("/proc/self/mountinfo")
		must(t, err)
		return strings.Count(string(all), " "+target+"/0 ")
	}
	reads := func(path, want string) {
		t.Helper()
		if data, err := os.ReadFile(filepath.Join(target, path)); err != nil || string(data) != want {
			t.Errorf("%s: %q, %v, want %q", path, data, err, want)
		}
		if n := mounts(); n != 1 {
			t.Errorf("mounted %d times", n)
		}
	}
	for range 2 { // the second time it is there
		bindPart("dir")
		reads("0/key", "one")
	}
	for range 2 { // a file in the place of a directory
		bindPart("dir/key")
		reads("0", "one")
	}
	// B040: the file is replaced. What is bound stays what it was, until it is bound anew.
	must(t, os.Remove(filepath.Join(dir, "dir/key")), os.WriteFile(filepath.Join(dir, "dir/key"), []byte("two"), 0o644))
	reads("0", "one")
	bindPart("dir/key")
	reads("0", "two")
	// Mounted over by somebody: all goes, and what is behind stays.
	outside := canary.Tree(t)
	must(t, unix.Mount(filepath.Join(outside, "file"), filepath.Join(target, "0"), "", unix.MS_BIND, ""))
	bindPart("dir")
	reads("0/key", "two")
	for range 2 {
		must(t, Unbind(places, "0"))
		if _, err := os.Lstat(filepath.Join(target, "0")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("left: %v", err)
		}
	}
}

// What nobody bound is not removed.
func TestUnbindLeavesContent(t *testing.T) {
	root, dir := open(t)
	must(t, os.MkdirAll(filepath.Join(dir, "full/x"), 0o755), os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o644))
	for _, name := range []string{"full", "file"} {
		if err := Unbind(root, name); err == nil {
			t.Errorf("%s was removed", name)
		}
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

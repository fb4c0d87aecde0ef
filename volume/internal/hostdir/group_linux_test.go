package hostdir

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podmill/podmill/internal/testenv"
	"github.com/podmill/podmill/volume/internal/canary"
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
	must(t, ChangeGroup(root, 2000, false))
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
		must(t, ChangeGroup(root, 2000, true))
		if done := ownedBy(t, file) == "0 600" || ownedBy(t, file) == "0 660"; done != tt.done {
			t.Errorf("%v of group %d: taken for done: %v, want %v", tt.mode, tt.gid, done, tt.done)
		}
	}
}

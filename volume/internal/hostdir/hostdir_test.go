package hostdir

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/podmill/podmill/volume/internal/canary"
)

func open(t testing.TB) (*os.Root, string) {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root, dir
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestEnterFollowsNoLink(t *testing.T) {
	root, dir := open(t)
	outside := canary.Tree(t)
	must(t, os.Mkdir(filepath.Join(dir, "real"), 0o755), os.WriteFile(filepath.Join(dir, "file"), nil, 0o644),
		os.Symlink("real", filepath.Join(dir, "inside")), os.Symlink(outside, filepath.Join(dir, "outside")))
	for _, name := range []string{"file", "inside", "outside", "missing"} {
		if entered, err := Enter(root, name); err == nil {
			t.Errorf("entered %s as %s", name, entered.Name())
		}
	}
	entered, err := Enter(root, "real")
	must(t, err, entered.Close())
}

func TestMakeIsWholeOrNotThere(t *testing.T) {
	root, dir := open(t)
	must(t, os.Mkdir(filepath.Join(dir, ".a"), 0o700)) // a crash came before the mode was set
	must(t, Make(root, "a", 0o777, -1))
	info, err := os.Stat(filepath.Join(dir, "a"))
	must(t, err)
	if info.Mode().Perm() != 0o777 {
		t.Errorf("mode %v, whatever the umask it is 0777", info.Mode())
	}
	if _, err := os.Lstat(filepath.Join(dir, ".a")); err == nil {
		t.Error(".a is still there")
	}
	// From now on it is its users' own.
	must(t, os.Chmod(filepath.Join(dir, "a"), 0o700), Make(root, "a", 0o777, -1))
	if info, _ := os.Stat(filepath.Join(dir, "a")); info.Mode().Perm() != 0o700 {
		t.Errorf("the mode was set again, to %v", info.Mode())
	}
	must(t, os.Symlink("a", filepath.Join(dir, "link")))
	if err := Make(root, "link", 0o755, -1); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("a link in the directory's place: %v", err)
	}
}

func TestRemoveTree(t *testing.T) {
	root, dir := open(t)
	outside := canary.Tree(t)
	must(t, os.MkdirAll(filepath.Join(dir, "v/a/b"), 0o755), os.WriteFile(filepath.Join(dir, "v/a/file"), nil, 0o644),
		os.Symlink(outside, filepath.Join(dir, "v/link")), os.Symlink(outside, filepath.Join(dir, "v/a/b/link")), os.Symlink("nowhere", filepath.Join(dir, "v/dead")))
	for i := range 1500 { // more than are listed at a time
		must(t, os.WriteFile(filepath.Join(dir, "v", strconv.Itoa(i)), nil, 0o644))
	}
	must(t, RemoveTree(root, "v"), RemoveTree(root, "v"))
	if _, err := os.Lstat(filepath.Join(dir, "v")); !os.IsNotExist(err) {
		t.Errorf("v is still there: %v", err)
	}
	must(t, os.Symlink(outside, filepath.Join(dir, "v")), RemoveTree(root, "v"))
	if left, _ := fs.ReadDir(root.FS(), "."); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

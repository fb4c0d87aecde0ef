package atomicfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/podmill/podmill/internal/atomicfile"
)

func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, last := range []bool{false, true} {
		if err := atomicfile.Replace(path, []byte("new"), last); err != nil {
			t.Fatal(err)
		}
	}
	if err := atomicfile.SyncDirectory(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v, want mode 0600", info, err)
	}
	// What cannot be put in place leaves what was there, and nothing beside it.
	dir := filepath.Join(filepath.Dir(path), "dir")
	if err := os.MkdirAll(filepath.Join(dir, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Replace(dir, []byte("new"), true); err == nil {
		t.Error("a directory was replaced")
	}
	if _, err := os.Lstat(dir + atomicfile.Unfinished); !os.IsNotExist(err) {
		t.Errorf("left: %v", err)
	}
}

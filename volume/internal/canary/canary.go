// Package canary has a directory for tests that nothing may change.
package canary

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Tree makes a tree of files that somebody needs, and returns its path. If anything in it has changed when the test ends, the test fails.
func Tree(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	Fill(t, dir)
	return dir
}

// Fill makes a [Tree] in a directory.
func Fill(t testing.TB, dir string) {
	t.Helper()
	for _, name := range []string{"file", "sub/file", "sub/sub/file", "..data/key"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("precious "+name), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	before := hash(t, dir)
	t.Cleanup(func() {
		if hash(t, dir) != before {
			t.Errorf("the tree at %s has changed", dir)
		}
	})
}

// hash covers names, modes, sizes, times of change and contents.
func hash(t testing.TB, dir string) string {
	t.Helper()
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintln(sum, path, info.Mode(), info.Size(), info.ModTime().UnixNano())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			_, _ = sum.Write(data)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("the tree at %s cannot be read any more: %v", dir, err)
	}
	return string(sum.Sum(nil))
}

package agent_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// tree is what the agent has written, by path: what a process that is killed leaves.
type tree map[string][]byte // nil is a directory

// kept are the directories that an agent reads when it starts.
var kept = []string{"pods", "status"}

func readTree(t *testing.T, root string) tree {
	disk := tree{}
	for _, dir := range kept {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				disk[path] = nil
				return nil
			}
			var data []byte
			if err == nil {
				data, err = os.ReadFile(path)
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil // or not any more: a process is killed in the middle of something
			}
			disk[path] = data
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return disk
}

// restore makes disk what it was.
func (disk tree) restore(t *testing.T, root string) {
	for _, dir := range kept {
		if err := os.RemoveAll(filepath.Join(root, dir)); err != nil {
			t.Fatal(err)
		}
	}
	for path, data := range disk {
		var err error
		if data == nil {
			err = os.MkdirAll(path, 0o750)
		} else if err = os.MkdirAll(filepath.Dir(path), 0o750); err == nil {
			err = os.WriteFile(path, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

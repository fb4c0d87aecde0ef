package testenv

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// CgroupRoot returns the name of a cgroup root of this test's own, such as
// /podmill-test-4711-9f3a21, for two agents with one root kill each other's pods
// as orphans. It does not exist yet. When the test ends, the tree is removed
// bottom-up from every hierarchy; a process still in it fails the test.
func CgroupRoot(t testing.TB) string {
	t.Helper()
	Root(t)
	// With the process ID, `make down` knows whose test was killed.
	name := fmt.Sprintf("/podmill-test-%d-%06x", os.Getpid(), rand.N(1<<24))
	t.Cleanup(func() {
		mounts, err := cgroupMounts()
		if err != nil {
			t.Errorf("find cgroup hierarchies: %v", err)
		}
		for _, m := range mounts {
			if err := removeTree(filepath.Join(m, name)); err != nil {
				t.Errorf("cgroup left behind: %v", err)
			}
		}
	})
	return name
}

// cgroupMounts lists where the hierarchies are mounted, v1 and v2.
func cgroupMounts() ([]string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var mounts []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		head, tail, _ := strings.Cut(lines.Text(), " - ")
		if fields := strings.Fields(head); strings.HasPrefix(tail, "cgroup") && len(fields) > 4 {
			mounts = append(mounts, fields[4])
		}
	}
	return mounts, nil
}

// removeTree removes a cgroup's directories, deepest first. The kernel needs a
// moment after the last process is gone.
func removeTree(root string) error {
	var err error
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err = removeOnce(root); err == nil {
			return nil
		}
	}
	return err
}

func removeOnce(root string) error {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, d := range slices.Backward(dirs) {
		if err := os.Remove(d); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

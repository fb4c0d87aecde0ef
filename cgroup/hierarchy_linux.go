package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/containerd/cgroups/v3"
)

const mountPoint = "/sys/fs/cgroup"

// newHierarchy returns the hierarchies of the version that the machine uses.
func newHierarchy(d Driver) (hierarchy, error) {
	switch cgroups.Mode() {
	case cgroups.Unified:
		return &unified{driver: d, root: mountPoint}, nil
	case cgroups.Legacy, cgroups.Hybrid:
		return newLegacy(d)
	default:
		return nil, errors.New("no cgroup hierarchy is mounted at " + mountPoint)
	}
}

// removeTree removes a cgroup's directory and those below it, from the bottom up, with rmdir alone: the kernel refuses it where a process
// is inside, and the files in it go by themselves.
func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ignoreAbsent(err)
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeTree(filepath.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	err = syscall.Rmdir(dir)
	if errors.Is(err, syscall.EBUSY) {
		return fmt.Errorf("%s still holds processes: %w", dir, err)
	}
	return ignoreAbsent(err)
}

func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) {
		return nil
	}
	return err
}

// childrenOf returns the names of the directories in several places, each once.
func childrenOf(dirs ...string) ([]string, error) {
	var names []string
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if ignoreAbsent(err) != nil {
			return nil, err
		}
		for _, entry := range entries {
			if entry.IsDir() {
				names = append(names, entry.Name())
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// free takes away a limit: of some the libraries cannot say that.
func free(dir, file string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("max")
	return errors.Join(err, f.Close())
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

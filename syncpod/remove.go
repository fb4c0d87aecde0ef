package syncpod

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// removeTree removes a directory that nothing needs any more, as carefully as somebody else's data may be in it. It does nothing
// if anything is mounted there. Otherwise directories go when they are empty, links go without their targets being looked at, and files
// only if known says that they may, by their path below dir. What stays is named in the error; all else is gone.
func removeTree(dir string, known func(path string) bool) error {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		return removeEntry(dir, info.Mode().Type(), false, os.Remove)
	}
	mount, err := mountBelow(dir)
	if err != nil {
		return fmt.Errorf("look for mounts in %s: %w", dir, err)
	}
	if mount != "" {
		return fmt.Errorf("%s is mounted, nothing in %s is removed", mount, dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	err = errors.Join(empty(root, dir, ".", known), root.Close())
	if err != nil {
		return err
	}
	return removeFile(dir)
}

// empty removes what is in a directory of root. Everything is done through root, so that a directory which is exchanged for a link on
// the way leads nowhere else.
func empty(root *os.Root, dir, path string, known func(string) bool) error {
	entries, err := fs.ReadDir(root.FS(), filepath.ToSlash(path))
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		p := filepath.Join(path, e.Name())
		if e.IsDir() {
			if err := empty(root, dir, p, known); err != nil {
				errs = append(errs, err)
				continue
			}
		}
		if err := removeEntry(filepath.Join(dir, p), e.Type(), known(p), func(string) error { return root.Remove(p) }); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func removeEntry(path string, kind fs.FileMode, known bool, remove func(string) error) error {
	if !kind.IsDir() && kind != fs.ModeSymlink && !known {
		return fmt.Errorf("%s is not ours to remove", path)
	}
	if err := remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

package hostdir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// maxDepth is how many directories of a tree are open at a time. Whoever filled a volume may have nested more of them than a process
// can have open files.
const maxDepth = 64

// RemoveTree removes a file, a link or a directory with all that is in it; it is no error if there is none. It follows no link, and enters
// nothing that is mounted inside: that stays, with the directories that lead there, and is named in the error. The rest is removed.
func RemoveTree(parent *os.Root, name string) error {
	dir, err := parent.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	r := remover{}
	return r.remove(dir, name, Path(parent, name), 0)
}

type remover struct {
	top   *os.File // the tree's own directory
	moved int
}

// remove removes what is called name in dir. path is for messages.
func (r *remover) remove(dir *os.File, name, path string, depth int) error {
	fd := int(dir.Fd())
	err := unix.Unlinkat(fd, name, 0)
	if errors.Is(err, unix.EISDIR) {
		err = unix.Unlinkat(fd, name, unix.AT_REMOVEDIR)
	}
	if errors.Is(err, unix.ENOTEMPTY) {
		if depth == maxDepth {
			return r.moveUp(fd, name, path)
		}
		if err := r.empty(dir, name, path, depth); err != nil {
			return err
		}
		err = unix.Unlinkat(fd, name, unix.AT_REMOVEDIR)
	}
	switch {
	case err == nil, errors.Is(err, unix.ENOENT):
		return nil
	case errors.Is(err, unix.EBUSY):
		err = fmt.Errorf("%w: %w", err, errMount)
	}
	return &fs.PathError{Op: "remove", Path: path, Err: err}
}

// empty removes all that is in a directory. One failure does not keep it from the rest; the first is returned.
func (r *remover) empty(parent *os.File, name, path string, depth int) error {
	dir, err := enterSameMount(parent, name, path)
	if err != nil {
		return err
	}
	defer dir.Close()
	if r.top == nil {
		r.top = dir
	}
	for {
		found, failed, err := r.sweep(dir, path, depth)
		if found == failed { // nothing is there any more, or nothing that can be removed
			return err
		}
		// Deeper directories may have been moved here, and a directory that changes may be listed with gaps.
		if _, err := dir.Seek(0, io.SeekStart); err != nil {
			return &fs.PathError{Op: "read", Path: path, Err: err}
		}
	}
}

// sweep goes once through a directory.
func (r *remover) sweep(dir *os.File, path string, depth int) (found, failed int, first error) {
	for {
		names, err := dir.Readdirnames(1024)
		for _, name := range names {
			found++
			if err := r.remove(dir, name, filepath.Join(path, name), depth+1); err != nil {
				failed++
				first = firstOf(first, err)
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return found, failed, first
		case err != nil:
			return 0, 0, firstOf(first, err)
		}
	}
}

func firstOf(first, next error) error {
	if first != nil {
		return first
	}
	return next
}

// moveUp puts a directory next to the shallowest ones, where it is found by the next sweep.
func (r *remover) moveUp(fd int, name, path string) error {
	for {
		r.moved++
		err := unix.Renameat2(fd, name, int(r.top.Fd()), fmt.Sprintf("removed-%d", r.moved), unix.RENAME_NOREPLACE)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, unix.EEXIST):
			return &fs.PathError{Op: "remove", Path: path, Err: err}
		}
	}
}

// enterSameMount opens a directory unless it is a link, or something is mounted on it. The kernel checks and opens in one step.
func enterSameMount(parent *os.File, name, path string) (*os.File, error) {
	fd, err := unix.Openat2(int(parent.Fd()), name, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH,
	})
	if errors.Is(err, unix.EXDEV) {
		err = errMount
	}
	if err != nil {
		return nil, &fs.PathError{Op: "remove", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

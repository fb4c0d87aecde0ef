// Package hostdir works on directories that others can write to. Everything is done relative to an open directory, and no link is
// followed: a link that somebody put in the place of a directory is an error, or is itself what is removed.
package hostdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Enter opens a directory that lies in another. A link or a file of that name is an error.
func Enter(parent *os.Root, name string) (*os.Root, error) {
	before, err := parent.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !before.IsDir() {
		return nil, notDirectory(parent, name)
	}
	dir, err := parent.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	// OpenRoot follows a link that stays below parent. One that took the directory's place meanwhile leads to another directory.
	if now, err := dir.Stat("."); err != nil || !os.SameFile(before, now) {
		return nil, errors.Join(notDirectory(parent, name), err, dir.Close())
	}
	return dir, nil
}

// Make makes a directory with its final mode, whatever the umask, and group; a negative gid leaves the group alone. The directory
// appears complete or not at all. If there is one of that name already, it is left as it is.
func Make(parent *os.Root, name string, mode fs.FileMode, gid int) error {
	if info, err := parent.Lstat(name); err == nil {
		if !info.IsDir() {
			return notDirectory(parent, name)
		}
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	stage := "." + name // one that a crash left behind is used again; it is empty
	if err := parent.Mkdir(stage, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	dir, err := Enter(parent, stage)
	if err != nil {
		return err
	}
	defer dir.Close()
	if gid >= 0 {
		if err := dir.Chown(".", -1, gid); err != nil {
			return err
		}
	}
	if err := dir.Chmod(".", mode); err != nil { // after the change of group, which may clear the setgid bit
		return err
	}
	return parent.Rename(stage, name)
}

func notDirectory(parent *os.Root, name string) error {
	return &fs.PathError{Op: "open", Path: Path(parent, name), Err: syscall.ENOTDIR}
}

// Path returns the path of something in a directory, for messages.
func Path(parent *os.Root, name string) string { return filepath.Join(parent.Name(), name) }

// errMount says that something is mounted where a directory was to be removed.
var errMount = errors.New("something is mounted there, and what is mounted is not removed")

// ErrNoTmpfs says that there is no file system in memory to be had.
var ErrNoTmpfs = fmt.Errorf("file systems in memory need Linux: %w", errors.ErrUnsupported)

// Tmpfs is a file system in memory.
type Tmpfs struct {
	Size int64 // in bytes; 0 is the kernel's default, half of the memory
	Mode fs.FileMode
	GID  int // negative is the default group
	// PageSize makes it one of huge pages of that many bytes; 0 is ordinary memory.
	PageSize int64
}

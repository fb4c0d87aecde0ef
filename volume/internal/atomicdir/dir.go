package atomicdir

import (
	"io/fs"
	"os"

	"github.com/podmill/podmill/volume/internal/hostdir"
)

// Dir is what is done to a directory. Names are relative to it, and no method leaves it or follows a link out of it.
type Dir interface {
	Lstat(name string) (fs.FileInfo, error)
	Readlink(name string) (string, error)
	FS() fs.FS
	// Enter opens a directory in it.
	Enter(name string) (*os.Root, error)
	// Mkdir makes a directory with this mode, whatever the umask.
	Mkdir(name string, mode fs.FileMode) error
	// WriteFile makes a file that must not be there yet.
	WriteFile(name string, file File) error
	Symlink(target, name string) error
	Rename(from, to string) error
	Remove(name string) error
	// RemoveTree removes a directory and all in it, but nothing that is mounted there.
	RemoveTree(name string) error
}

// In returns an open directory as a [Dir].
func In(root *os.Root) Dir { return rooted{root} }

type rooted struct{ *os.Root }

func (r rooted) Mkdir(name string, mode fs.FileMode) error {
	if err := r.Root.Mkdir(name, mode.Perm()); err != nil {
		return err
	}
	return r.Chmod(name, mode)
}

func (r rooted) WriteFile(name string, file File) error {
	f, err := r.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := fill(f, file); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

func fill(f *os.File, file File) error {
	if _, err := f.Write(file.Data); err != nil {
		return err
	}
	if file.UID >= 0 {
		if err := f.Chown(file.UID, -1); err != nil {
			return err
		}
	}
	return f.Chmod(file.Mode)
}

func (r rooted) Enter(name string) (*os.Root, error) { return hostdir.Enter(r.Root, name) }

func (r rooted) RemoveTree(name string) error { return hostdir.RemoveTree(r.Root, name) }

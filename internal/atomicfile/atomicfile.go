// Package atomicfile puts files in place as a whole: a reader sees the old one or the new one.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
)

// Unfinished is what a name ends in while its file is being written. A crash may leave one behind.
const Unfinished = ".tmp"

// Replace puts a file with data, which only its owner may read, in the place of path. Where it has to last, a loss of power leaves one or the other: the new one
// once [SyncDirectory] has returned.
func Replace(path string, data []byte, last bool) error {
	file, err := os.OpenFile(path+Unfinished, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600) //nolint:gosec // the caller's own
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil && last {
		err = file.Sync()
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(path+Unfinished, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(path+Unfinished))
	}
	return nil
}

// SyncDirectory makes the renames in a directory outlive a loss of power.
func SyncDirectory(path string) error {
	dir, err := os.Open(path) //nolint:gosec // the caller's own
	if err != nil {
		return err
	}
	err = dir.Sync()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrInvalid) || errors.Is(err, fs.ErrPermission) {
		err = nil // Windows has no such thing
	}
	return errors.Join(err, dir.Close())
}

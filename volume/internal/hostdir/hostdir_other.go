//go:build !linux

package hostdir

import (
	"os"
)

// HasTmpfs says that [MountTmpfs] may work.
const HasTmpfs = false

// IsMount is false: nothing is mounted by this package but on Linux, and no container is run that could.
func IsMount(*os.Root, string) (bool, error) { return false, nil }

// MountTmpfs returns [ErrNoTmpfs].
func MountTmpfs(*os.Root, string, Tmpfs) error { return ErrNoTmpfs }

// UnmountTmpfs returns [ErrNoTmpfs].
func UnmountTmpfs(*os.Root, string) error { return ErrNoTmpfs }

// RemoveTree removes a file, a link or a directory with all that is in it; it is no error if there is none. It follows no link.
func RemoveTree(parent *os.Root, name string) error { return parent.RemoveAll(name) }

//go:build !linux

package hostdir

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// errNoParts says that parts of directories cannot be mounted.
var errNoParts = fmt.Errorf("mounting a part of a volume needs Linux: %w", errors.ErrUnsupported)

// HasMounts says that [MountTmpfs] and [Bind] may work.
const HasMounts = false

// IsMount is false: nothing is mounted by this package but on Linux, and no container is run that could.
func IsMount(*os.Root, string) (bool, error) { return false, nil }

// CheckMemory finds nothing.
func CheckMemory(*os.Root, string) error { return nil }

// MountTmpfs returns [ErrNoTmpfs].
func MountTmpfs(*os.Root, string, Tmpfs) error { return ErrNoTmpfs }

// UnmountTmpfs returns [ErrNoTmpfs].
func UnmountTmpfs(*os.Root, string) error { return ErrNoTmpfs }

// OpenPart returns an error.
func OpenPart(*os.Root, string) (*os.File, error) { return nil, errNoParts }

// Bind returns an error.
func Bind(*os.File, *os.Root, string) error { return errNoParts }

// IsBound is false.
func IsBound(*os.File, *os.Root, string) (bool, error) { return false, nil }

// GroupOf returns an error.
func GroupOf(*os.Root) (int, error) { return 0, errNoParts }

// ChangeGroup returns an error.
func ChangeGroup(context.Context, *os.Root, int, bool) error { return errNoParts }

// Unbind removes an empty directory or file; nothing was ever bound to it.
func Unbind(parent *os.Root, name string) error { return parent.Remove(name) }

// RemoveTree removes a file, a link or a directory with all that is in it; it is no error if there is none. It follows no link.
func RemoveTree(parent *os.Root, name string) error { return parent.RemoveAll(name) }

package hostdir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"

	"github.com/podmill/podmill/volume/internal/patience"
)

// What a group may do with what it owns: the kubelet's rule for an fsGroup.
const (
	groupReadsAndWrites = 0o660
	groupEnters         = 0o110 | unix.S_ISGID
)

// deepest is how deep a tree may be of which the group is changed. One descriptor is open for each directory on the way.
const deepest = 1000

// GroupOf returns the group that a directory belongs to.
func GroupOf(dir *os.Root) (int, error) {
	info, err := dir.Stat(".")
	if err != nil {
		return 0, err
	}
	return int(info.Sys().(*syscall.Stat_t).Gid), nil
}

// ChangeGroup gives a directory and all that is in it to a group, which may read and write it from then on, and has what will be made there. With
// onRootMismatch it does nothing where the directory itself is as it should be already; for that, the directory comes last. It follows no link, and enters nothing
// that is mounted inside. What cannot be given away, such as an immutable file, stays as it is and is logged, as in the kubelet; a directory that cannot be read is an
// error, as is the end of ctx. It may take hours, and renews the patience of ctx with each file.
func ChangeGroup(ctx context.Context, dir *os.Root, gid int, onRootMismatch bool) error {
	top, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer top.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(top.Fd()), &st); err != nil {
		return &fs.PathError{Op: "stat", Path: dir.Name(), Err: err}
	}
	if wanted := uint32(groupReadsAndWrites | groupEnters); onRootMismatch && st.Gid == uint32(gid) && st.Mode&wanted == wanted {
		return nil
	}
	g := giving{gid: gid}
	err = g.all(ctx, top, dir.Name(), 0)
	if g.failed > 0 { // one line, for there may be any number of files
		logr.FromContextOrDiscard(ctx).Error(g.first, "not all in a volume could be given to the pod's group", "path", dir.Name(), "gid", gid, "failed", g.failed)
	}
	return err
}

// giving is a change of the group of a tree.
type giving struct {
	gid    int
	failed int   // how much stays as it was
	first  error // why the first of it does
}

// all changes what is in an open directory, and then the directory.
func (g *giving) all(ctx context.Context, dir *os.File, path string, depth int) error {
	if depth == deepest {
		return fmt.Errorf("%s: directories are nested more than %d deep", path, deepest)
	}
	for {
		names, err := dir.Readdirnames(1024)
		for _, name := range names {
			if err := g.one(ctx, dir, name, filepath.Join(path, name), depth); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			g.give(int(dir.Fd()), path)
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// one changes what has a name in an open directory.
func (g *giving) one(ctx context.Context, dir *os.File, name, path string, depth int) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	patience.Renew(ctx)
	next, err := g.giveOrOpen(dir, name, path)
	if err != nil || next == nil {
		return err
	}
	defer next.Close()
	return g.all(ctx, next, path, depth+1)
}

// giveOrOpen opens a directory, so that what is in it can be changed first. All else it changes, and returns nil.
func (g *giving) giveOrOpen(dir *os.File, name, path string) (*os.File, error) {
	flags := uint64(unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC)
	how := unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(int(dir.Fd()), name, &how)
	switch {
	case errors.Is(err, unix.EXDEV), errors.Is(err, unix.ENOENT): // mounted there, or gone meanwhile
		return nil, nil
	case err != nil:
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		g.give(fd, path)
		return nil, nil
	}
	sub, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(sub), path), nil
}

// give gives what is open to the group, or counts it.
func (g *giving) give(fd int, path string) {
	if err := give(fd, path, g.gid); err != nil {
		if g.first == nil {
			g.first = err
		}
		g.failed++
	}
}

// give gives what is open to a group. What is right already is not written.
func give(fd int, path string, gid int) error {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	given := err == nil && st.Gid == uint32(gid)
	if err == nil && !given {
		err = unix.Fchownat(fd, "", -1, gid, unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		return &fs.PathError{Op: "chown", Path: path, Err: err}
	}
	mode := st.Mode&0o7777 | groupReadsAndWrites
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		return nil // it has no mode of its own
	case unix.S_IFDIR:
		mode |= groupEnters
	}
	if given && mode == st.Mode&0o7777 {
		return nil
	}
	// Also where the mode was right: the change of the group may have cleared bits.
	if err := unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), mode); err != nil {
		return &fs.PathError{Op: "chmod", Path: path, Err: err}
	}
	return nil
}

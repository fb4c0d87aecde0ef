package hostdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// errOutside says that a path leads out of the volume that it should lie in.
var errOutside = errors.New("it leads out of the volume")

// OpenPart opens whatever is at a path below a volume's directory, without reading or writing it, and makes directories where nothing is: they get the mode of
// the volume's own, whatever the umask, and with the setgid bit its group. Links are followed as long as they stay below. Whether they do is decided
// by the kernel in the step that opens what they lead to, so that nobody can exchange one for the other in between.
func OpenPart(volume *os.Root, path string) (*os.File, error) {
	part, err := openPart(volume, path)
	if errors.Is(err, unix.EXDEV) {
		err = errOutside
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: volume.Name() + "/" + path, Err: err} // as it was asked for
	}
	return part, nil
}

func openPart(volume *os.Root, path string) (*os.File, error) {
	names, err := elements(path)
	if err != nil {
		return nil, err
	}
	root, err := volume.Open(".")
	if err != nil {
		return nil, err
	}
	defer root.Close()
	fd, err := openBeneath(root, strings.Join(append([]string{"."}, names...), "/"), unix.O_PATH)
	if !errors.Is(err, unix.ENOENT) {
		return newFile(fd, path, err)
	}
	info, err := root.Stat()
	if err != nil {
		return nil, err
	}
	return makeParts(root, names, unixMode(info.Mode()))
}

// elements returns the names of which a path is made, none for the directory itself. A path that names something outside, even if only on
// its way, is an error.
func elements(path string) ([]string, error) {
	if filepath.IsAbs(path) {
		return nil, fmt.Errorf("%w: it is absolute", errOutside)
	}
	var names []string
	for name := range strings.SplitSeq(filepath.ToSlash(path), "/") {
		switch name {
		case "", ".":
		case "..":
			return nil, fmt.Errorf("%w: it contains '..'", errOutside)
		default:
			names = append(names, name)
		}
	}
	return names, nil
}

// makeParts goes down a path, from the volume's directory anew for each name, for there may be links that lead back up. It makes the directories that are
// missing.
func makeParts(root *os.File, names []string, mode uint32) (*os.File, error) {
	dir := root
	for i, name := range names {
		path := strings.Join(names[:i+1], "/")
		fd, err := openBeneath(root, path, unix.O_RDONLY|unix.O_DIRECTORY)
		if errors.Is(err, unix.ENOENT) {
			fd, err = makePart(dir, name, mode)
		}
		if dir != root {
			_ = dir.Close() // nothing was written to it
		}
		if dir, err = newFile(fd, path, err); err != nil {
			return nil, err
		}
	}
	return dir, nil
}

// makePart makes a directory and opens it. Somebody else may have made it first; then its mode is his.
func makePart(parent *os.File, name string, mode uint32) (int, error) {
	made := unix.Mkdirat(int(parent.Fd()), name, mode&0o777)
	if made != nil && !errors.Is(made, unix.EEXIST) {
		return -1, made
	}
	fd, err := unix.Openat(int(parent.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil || made != nil {
		return fd, err
	}
	if err := unix.Fchmod(fd, mode); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// maxRaces is how often the kernel may find that it was outrun: somebody renames directories while it follows "..".
const maxRaces = 128

func openBeneath(dir *os.File, path string, flags uint64) (fd int, err error) {
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS}
	for range maxRaces {
		fd, err = unix.Openat2(int(dir.Fd()), path, &how)
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			break
		}
	}
	return fd, err
}

func newFile(fd int, path string, err error) (*os.File, error) {
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// Bind mounts an open file or directory at a name in a directory. If that very thing is mounted there already, by this process or one before it, nothing is done;
// something else that [Bind] mounted there makes way. What is mounted inside of it is not seen there.
func Bind(part *os.File, parent *os.Root, name string) error {
	if bound, err := IsBound(part, parent, name); err != nil || bound {
		return err
	}
	if err := Unbind(parent, name); err != nil {
		return err
	}
	if err := makeTarget(part, parent, name); err != nil {
		return err
	}
	err := attach(part, parent, name)
	if errors.Is(err, unix.EPERM) {
		err = fmt.Errorf("%w, for it takes root: %w", err, errors.ErrUnsupported)
	}
	if err != nil {
		return &fs.PathError{Op: "bind to", Path: Path(parent, name), Err: err}
	}
	return nil
}

// IsBound reports whether [Bind] has nothing to do.
func IsBound(part *os.File, parent *os.Root, name string) (bool, error) {
	mounted, err := IsMount(parent, name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || !mounted {
		return false, err
	}
	want, err := part.Stat()
	if err != nil {
		return false, err
	}
	is, err := parent.Lstat(name)
	return err == nil && os.SameFile(want, is), err
}

// makeTarget makes what a part can be mounted on: a directory for a directory, and a file for all else.
func makeTarget(part *os.File, parent *os.Root, name string) error {
	info, err := part.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() {
		return parent.Mkdir(name, 0o750)
	}
	target, err := parent.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	return target.Close()
}

// attach goes by descriptors alone, so that no path is looked up that somebody could have changed.
func attach(part *os.File, parent *os.Root, name string) error {
	dir, err := parent.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	target, err := unix.Openat(int(dir.Fd()), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(target)
	tree, err := unix.OpenTree(int(part.Fd()), "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	return unix.MoveMount(tree, "", target, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// Unbind undoes [Bind]: it unmounts whatever is mounted at a name in a directory, and removes the empty directory or file beneath. It is no error if there
// is none. Of what was mounted nothing is touched.
func Unbind(parent *os.Root, name string) error {
	for {
		mounted, err := IsMount(parent, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case !mounted:
			return removeTarget(parent, name)
		}
		if err := unmount(parent, name); err != nil {
			return err
		}
	}
}

func removeTarget(parent *os.Root, name string) error {
	info, err := parent.Lstat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() && info.Mode().Type() != fs.ModeSymlink && info.Size() > 0 {
		return &fs.PathError{Op: "remove", Path: Path(parent, name), Err: errors.New("it is a file with something in it, and not where a part was mounted")}
	}
	return parent.Remove(name) // a directory only if it is empty
}

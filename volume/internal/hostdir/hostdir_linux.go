package hostdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// HasMounts says that [MountTmpfs] and [Bind] may work.
const HasMounts = true

// IsMount reports that something is mounted on a directory or file. It is one call of the kernel, however many mounts there are, and does not wait for
// a server that is away.
func IsMount(parent *os.Root, name string) (bool, error) {
	dir, err := parent.Open(".")
	if err != nil {
		return false, err
	}
	defer dir.Close()
	var st unix.Statx_t
	flags := unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT | unix.AT_STATX_DONT_SYNC
	if err := unix.Statx(int(dir.Fd()), name, flags, unix.STATX_TYPE, &st); err != nil {
		return false, &fs.PathError{Op: "statx", Path: Path(parent, name), Err: err}
	}
	if st.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT == 0 {
		// To guess wrong is to remove what is mounted.
		return false, fmt.Errorf("the kernel does not tell whether something is mounted on %s; Linux 5.8 does: %w", Path(parent, name), errors.ErrUnsupported)
	}
	return st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, nil
}

// MountTmpfs mounts a file system in memory on a directory. Where the kernel can (Linux 6.3), it is never swapped out. A process that may not mount
// gets [errors.ErrUnsupported].
func MountTmpfs(parent *os.Root, name string, t Tmpfs) error {
	target, err := Enter(parent, name)
	if err != nil {
		return err
	}
	defer target.Close()
	dir, err := target.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	data := fmt.Sprintf("mode=%o", unixMode(t.Mode))
	if t.GID >= 0 {
		data += fmt.Sprintf(",gid=%d", t.GID)
	}
	if t.Size > 0 {
		data += fmt.Sprintf(",size=%d", t.Size)
	}
	at := fmt.Sprintf("/proc/self/fd/%d", dir.Fd())
	err = unix.Mount("tmpfs", at, "tmpfs", 0, data+",noswap")
	if errors.Is(err, unix.EINVAL) {
		err = unix.Mount("tmpfs", at, "tmpfs", 0, data)
	}
	if errors.Is(err, unix.EPERM) {
		err = fmt.Errorf("%w, for it takes root: %w", err, errors.ErrUnsupported)
	}
	if err != nil {
		return &fs.PathError{Op: "mount tmpfs on", Path: Path(parent, name), Err: err}
	}
	return nil
}

func unixMode(m fs.FileMode) uint32 {
	bits := uint32(m.Perm())
	if m&fs.ModeSetgid != 0 {
		bits |= unix.S_ISGID
	}
	return bits
}

// UnmountTmpfs unmounts the file system in memory that is mounted on a directory; anything else is somebody else's. What is busy stays mounted:
// a lazy unmount would only hide it, and what is in it.
func UnmountTmpfs(parent *os.Root, name string) error {
	dir, err := parent.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := isTmpfs(int(dir.Fd()), name); err != nil {
		return &fs.PathError{Op: "unmount", Path: Path(parent, name), Err: err}
	}
	return unmount(parent, name)
}

// unmount unmounts what is mounted on a directory or file last. A link is not followed.
func unmount(parent *os.Root, name string) error {
	dir, err := parent.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := unix.Unmount(fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name), unix.UMOUNT_NOFOLLOW); err != nil {
		return &fs.PathError{Op: "unmount", Path: Path(parent, name), Err: err}
	}
	return nil
}

func isTmpfs(parent int, name string) error {
	fd, err := unix.Openat(parent, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Statfs_t
	switch err := unix.Fstatfs(fd, &st); {
	case err != nil:
		return err
	case st.Type != unix.TMPFS_MAGIC:
		return errors.New("what is mounted there was not mounted for a volume")
	}
	return nil
}

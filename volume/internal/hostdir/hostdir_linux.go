package hostdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

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

// MountTmpfs mounts a file system in memory on a directory. Where the kernel can (Linux 6.3), it is never swapped out. A process that may not mount, and
// a kernel without huge pages of that size, gets [errors.ErrUnsupported].
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
	if t.PageSize > 0 {
		err = t.mountHugePages(int(dir.Fd()))
	} else {
		err = t.mount(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()))
	}
	if errors.Is(err, unix.EPERM) {
		err = fmt.Errorf("%w, for it takes root: %w", err, errors.ErrUnsupported)
	}
	if err != nil {
		return &fs.PathError{Op: "mount tmpfs on", Path: Path(parent, name), Err: err}
	}
	return nil
}

func (t *Tmpfs) mount(at string) error {
	data := fmt.Sprintf("mode=%o", unixMode(t.Mode))
	if t.GID >= 0 {
		data += fmt.Sprintf(",gid=%d", t.GID)
	}
	if t.Size > 0 {
		data += fmt.Sprintf(",size=%d", t.Size)
	}
	err := unix.Mount("tmpfs", at, "tmpfs", 0, data+",noswap")
	if errors.Is(err, unix.EINVAL) {
		err = unix.Mount("tmpfs", at, "tmpfs", 0, data)
	}
	return err
}

// mountHugePages takes the long way: this file system takes no setgid bit as an option, and whoever finds it mounted may trust that it is as it should be.
func (t *Tmpfs) mountHugePages(target int) error {
	system, err := unix.Fsopen("hugetlbfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return t.noHugePages(err)
	}
	defer unix.Close(system)
	options := map[string]string{"pagesize": strconv.FormatInt(t.PageSize, 10)}
	if t.GID >= 0 {
		options["gid"] = strconv.Itoa(t.GID)
	}
	for name, value := range options {
		if err := unix.FsconfigSetString(system, name, value); err != nil {
			return t.noHugePages(err)
		}
	}
	if err := unix.FsconfigCreate(system); err != nil {
		return t.noHugePages(err)
	}
	mount, err := unix.Fsmount(system, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(mount)
	if err := unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", mount), unixMode(t.Mode)); err != nil {
		return err
	}
	return unix.MoveMount(mount, "", target, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

func (t *Tmpfs) noHugePages(err error) error {
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("the kernel has no huge pages of %d bytes: %w", t.PageSize, errors.ErrUnsupported)
	}
	return err
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

// CheckMemory returns an error where something is mounted on a directory that is no file system in memory.
func CheckMemory(parent *os.Root, name string) error {
	mounted, err := IsMount(parent, name)
	if err != nil || !mounted {
		return err
	}
	dir, err := parent.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := isTmpfs(int(dir.Fd()), name); err != nil {
		return &fs.PathError{Op: "open", Path: Path(parent, name), Err: err}
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
	if err := unix.Fstatfs(fd, &st); err != nil {
		return err
	}
	switch uint32(st.Type) { //nolint:gosec // the kernel's number has 32 bits; its type is signed, and on some machines no wider
	case unix.TMPFS_MAGIC, unix.HUGETLBFS_MAGIC:
		return nil
	}
	return errors.New("what is mounted there was not mounted for a volume")
}

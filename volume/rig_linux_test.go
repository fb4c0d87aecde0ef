package volume

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// owner returns the user, group and mode of a file.
func owner(t testing.TB, path string) string {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Stat(path, &st))
	return fmt.Sprintf("%d:%d %o", st.Uid, st.Gid, st.Mode&0o7777)
}

// fileSystem returns the type and size of the file system that a directory is on.
func fileSystem(t testing.TB, path string) string {
	t.Helper()
	var st unix.Statfs_t
	must(t, unix.Statfs(path, &st))
	if st.Type != unix.TMPFS_MAGIC {
		return "other"
	}
	return fmt.Sprintf("tmpfs %d", st.Blocks*uint64(st.Bsize))
}

// bind mounts from on at until the test ends.
func bind(t testing.TB, from, at string) {
	t.Helper()
	must(t, unix.Mount(from, at, "", unix.MS_BIND, ""))
	t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
}

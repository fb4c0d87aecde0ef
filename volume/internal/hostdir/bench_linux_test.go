package hostdir

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podmill/podmill/internal/testenv"
)

// BenchmarkIsMount asks whether a directory is a mount on a node with few mounts and with many. mountinfo-ns/op is what it takes to read the table
// of mounts, which it does without.
func BenchmarkIsMount(b *testing.B) {
	testenv.Root(b)
	for _, n := range []int{10, 4000} {
		b.Run(fmt.Sprintf("mounts=%d", n), func(b *testing.B) {
			root := manyMounts(b, n)
			start := time.Now()
			for range 10 {
				if _, err := os.ReadFile("/proc/thread-self/mountinfo"); err != nil {
					b.Fatal(err)
				}
			}
			table := time.Since(start) / 10
			for b.Loop() {
				if mounted, err := IsMount(root, fmt.Sprint(n-1)); err != nil || !mounted {
					b.Fatal(mounted, err)
				}
			}
			b.ReportMetric(float64(table.Nanoseconds()), "mountinfo-ns/op")
		})
	}
}

// manyMounts returns a directory of mounts that this thread alone sees.
func manyMounts(b testing.TB, n int) *os.Root {
	dir := b.TempDir()
	runtime.LockOSThread() // and is never unlocked: the thread is not to be used by anybody else
	must(b, unix.Unshare(unix.CLONE_FS|unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount("tmpfs", dir, "tmpfs", 0, ""))
	b.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	for i := range n {
		at := filepath.Join(dir, fmt.Sprint(i))
		must(b, os.Mkdir(at, 0o755), unix.Mount("tmpfs", at, "tmpfs", 0, ""))
	}
	root, err := os.OpenRoot(dir)
	must(b, err)
	b.Cleanup(func() { _ = root.Close() })
	return root
}

package machine

import (
	"bufio"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podmill/podmill/node"
)

// Readings says how much there is of what the machine may run out of. Images are taken to be on the disk of the root directory.
func (f *Flags) Readings() map[node.Signal]node.Reading {
	all := map[node.Signal]node.Reading{}
	if memory := meminfo(); memory["MemTotal"] > 0 {
		all[node.MemoryAvailable] = node.Reading{Available: memory["MemAvailable"], Capacity: memory["MemTotal"]}
	}
	var disk unix.Statfs_t
	if unix.Statfs(f.Root, &disk) == nil {
		size := int64(disk.Bsize)                                                                        //nolint:unconvert // on some machines it has 32 bits
		bytes := node.Reading{Available: int64(disk.Bavail) * size, Capacity: int64(disk.Blocks) * size} //nolint:gosec // less than an exbibyte
		inodes := node.Reading{Available: int64(disk.Ffree), Capacity: int64(disk.Files)}                //nolint:gosec // likewise
		all[node.NodefsAvailable], all[node.ImagefsAvailable] = bytes, bytes
		if inodes.Capacity > 0 { // some file systems do not count them
			all[node.NodefsInodesFree], all[node.ImagefsInodesFree] = inodes, inodes
		}
	}
	if limit, used := pids(); limit > 0 && used > 0 {
		all[node.PIDAvailable] = node.Reading{Available: limit - used, Capacity: limit}
	}
	return all
}

// pids returns how many processes and threads there may be, and how many there are. Not by sysinfo(2), which counts them in 16 bits.
func pids() (limit, used int64) {
	limit, _ = strconv.ParseInt(firstLine("/proc/sys/kernel/pid_max"), 10, 64)
	if threads, err := strconv.ParseInt(firstLine("/proc/sys/kernel/threads-max"), 10, 64); err == nil {
		limit = min(limit, threads)
	}
	if fields := strings.Fields(firstLine("/proc/loadavg")); len(fields) > 3 {
		_, threads, _ := strings.Cut(fields[3], "/")
		used, _ = strconv.ParseInt(threads, 10, 64)
	}
	return limit, used
}

// meminfo returns what the kernel says of its memory, in bytes.
func meminfo() map[string]int64 {
	all := map[string]int64{}
	file, err := os.Open("/proc/meminfo")
	if err != nil {
		return all
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		name, rest, _ := strings.Cut(lines.Text(), ":")
		number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		if value, err := strconv.ParseInt(number, 10, 64); err == nil {
			all[name] = value << 10
		}
	}
	return all
}

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
	var info unix.Sysinfo_t
	if limit, err := strconv.ParseInt(firstLine("/proc/sys/kernel/pid_max"), 10, 64); err == nil && unix.Sysinfo(&info) == nil {
		all[node.PIDAvailable] = node.Reading{Available: limit - int64(info.Procs), Capacity: limit}
	}
	return all
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

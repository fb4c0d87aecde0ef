package cri

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// host is what the machine decides of a container's limits.
type host struct {
	cgroupV2   bool
	swapLimits bool     // swap is accounted for, so that it can be denied
	pageSizes  []string // of huge pages, as control files call them: 2MB
	masked     []string // more that containers must not see
}

// lookAround looks at the machine whose root directory is given. Runtimes are on the same one: their sockets are.
func lookAround(root fs.FS) host {
	has := func(pattern string) bool {
		found, _ := fs.Glob(root, pattern) // the patterns are well-formed
		return len(found) > 0
	}
	h := host{cgroupV2: has("sys/fs/cgroup/cgroup.controllers")}
	if h.cgroupV2 {
		h.swapLimits = has("sys/fs/cgroup/*/memory.swap.max") // the root has none
	} else {
		h.swapLimits = has("sys/fs/cgroup/memory/memory.memsw.limit_in_bytes")
	}
	sizes, _ := fs.Glob(root, "sys/kernel/mm/hugepages/hugepages-*kB")
	for _, path := range sizes {
		size := path[strings.LastIndexByte(path, '-')+1:]
		if kilo, err := strconv.ParseInt(strings.TrimSuffix(size, "kB"), 10, 64); err == nil {
			h.pageSizes = append(h.pageSizes, pageSize(kilo<<10))
		}
	}
	throttles, _ := fs.Glob(root, "sys/devices/system/cpu/cpu[0-9]*/thermal_throttle") // tells what else the machine does
	for _, path := range throttles {
		h.masked = append(h.masked, "/"+path)
	}
	return h
}

// pageSize is a size of huge pages in bytes as the kernel's control files call it.
func pageSize(bytes int64) string {
	switch {
	case bytes >= 1<<30:
		return fmt.Sprintf("%dGB", bytes>>30)
	case bytes >= 1<<20:
		return fmt.Sprintf("%dMB", bytes>>20)
	default:
		return fmt.Sprintf("%dKB", bytes>>10)
	}
}

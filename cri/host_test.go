package cri

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestLookAround(t *testing.T) {
	for name, tc := range map[string]struct {
		files []string
		want  host
	}{
		"nothing":          {nil, host{}},
		"v1":               {[]string{"sys/fs/cgroup/memory/memory.limit_in_bytes", "sys/fs/cgroup/unified/cgroup.controllers"}, host{}},
		"v1 with swap":     {[]string{"sys/fs/cgroup/memory/memory.memsw.limit_in_bytes"}, host{swapLimits: true}},
		"v2":               {[]string{"sys/fs/cgroup/cgroup.controllers", "sys/fs/cgroup/init/memory.max"}, host{cgroupV2: true}},
		"v2 with swap":     {[]string{"sys/fs/cgroup/cgroup.controllers", "sys/fs/cgroup/init/memory.swap.max"}, host{cgroupV2: true, swapLimits: true}},
		"v2, v1's leaving": {[]string{"sys/fs/cgroup/cgroup.controllers", "sys/fs/cgroup/memory/memory.memsw.limit_in_bytes"}, host{cgroupV2: true}},
		"huge pages": {[]string{
			"sys/kernel/mm/hugepages/hugepages-64kB/x", "sys/kernel/mm/hugepages/hugepages-2048kB/x", "sys/kernel/mm/hugepages/hugepages-1048576kB/x",
			"sys/kernel/mm/hugepages/hugepages-0x1kB/x", "sys/kernel/mm/hugepages/other/x",
		}, host{pageSizes: []string{"1GB", "2MB", "64KB"}}},
		"processors": {[]string{"sys/devices/system/cpu/cpu0/thermal_throttle/x", "sys/devices/system/cpu/cpu10/thermal_throttle/x", "sys/devices/system/cpu/cpufreq/thermal_throttle/x"},
			host{masked: []string{"/sys/devices/system/cpu/cpu0/thermal_throttle", "/sys/devices/system/cpu/cpu10/thermal_throttle"}}},
	} {
		t.Run(name, func(t *testing.T) {
			root := fstest.MapFS{}
			for _, f := range tc.files {
				root[f] = &fstest.MapFile{}
			}
			if diff := cmp.Diff(tc.want, lookAround(root), cmp.AllowUnexported(host{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

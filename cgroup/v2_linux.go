package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"github.com/containerd/cgroups/v3/cgroup2"

	"github.com/podmill/podmill/internal/cpu"
)

// unified is cgroup v2: one hierarchy for all controllers.
type unified struct {
	driver Driver
	root   string
}

func (u *unified) apply(n name, limits Limits) error {
	weight := cpu.Weight(limits.CPUShares)
	resources := &cgroup2.Resources{CPU: &cgroup2.CPU{Weight: &weight}, Memory: &cgroup2.Memory{}}
	if limits.CPUPeriod != 0 {
		var quota *int64
		if limits.CPUQuota != 0 {
			quota = &limits.CPUQuota
		}
		resources.CPU.Max = cgroup2.NewCPUMax(quota, &limits.CPUPeriod)
		if limits.Memory != 0 {
			resources.Memory.Max = &limits.Memory
		}
		resources.Memory.Min, resources.Memory.Low = &limits.MemoryMin, &limits.MemoryLow
		if limits.PIDs > 0 {
			resources.Pids = &cgroup2.Pids{Max: limits.PIDs}
		}
	}
	if u.driver == Systemd && !u.exists(n) {
		if _, err := cgroup2.NewSystemd("/", n.slice(), -1, resources); err != nil {
			return err
		}
	}
	// The library switches the controllers on in all cgroups above, and writes the values, whoever made the directory.
	if _, err := cgroup2.NewManager(u.root, n.path(u.driver), resources); err != nil {
		return err
	}
	if limits.CPUPeriod == 0 {
		return nil
	}
	var errs []error
	if limits.Memory == 0 {
		errs = append(errs, free(u.dir(n), "memory.max"))
	}
	if limits.PIDs == 0 {
		errs = append(errs, ignoreAbsent(free(u.dir(n), "pids.max"))) // where that is not switched on there is no limit
	}
	return errors.Join(errs...)
}

func (u *unified) reserve(n name, limits Limits) error {
	for file, bytes := range map[string]int64{"memory.min": limits.MemoryMin, "memory.low": limits.MemoryLow} {
		//nolint:gosec // the kernel's file
		if err := os.WriteFile(filepath.Join(u.dir(n), file), []byte(strconv.FormatInt(bytes, 10)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (u *unified) exists(n name) bool { return isDir(u.dir(n)) }

func (u *unified) remove(n name) error {
	if !u.exists(n) {
		return nil
	}
	var err error
	if u.driver == Systemd {
		group, loadErr := cgroup2.LoadSystemd("/", n.slice())
		if err = loadErr; err == nil {
			err = group.DeleteSystemd()
		}
	}
	return errors.Join(err, removeTree(u.dir(n)))
}

func (u *unified) children(n name) ([]string, error) { return childrenOf(u.dir(n)) }

func (u *unified) dir(n name) string { return u.root + n.path(u.driver) }

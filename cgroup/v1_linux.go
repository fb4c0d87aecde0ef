package cgroup

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/containerd/cgroups/v3/cgroup1"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// legacy is cgroup v1: a hierarchy for each controller.
type legacy struct {
	driver     Driver
	subsystems []cgroup1.Subsystem
	roots      []string // the mount points of those that are mounted
	// unified is the mount point of cgroup v2, where it is mounted beside v1: nothing is limited there, but runtimes put containers in.
	unified string
}

func newLegacy(d Driver) (*legacy, error) {
	controllers := cgroup1.Default
	if d == Systemd {
		controllers = cgroup1.Systemd
	}
	subsystems, err := controllers()
	if err != nil {
		return nil, fmt.Errorf("find the cgroup hierarchies: %w", err)
	}
	l := &legacy{driver: d, unified: filepath.Join(mountPoint, "unified")}
	for _, s := range subsystems {
		// What is not a directory is systemd itself, which makes the slices.
		p, ok := s.(interface{ Path(path string) string })
		if ok && !isDir(p.Path("/")) {
			continue
		}
		if ok {
			l.roots = append(l.roots, p.Path("/"))
		}
		l.subsystems = append(l.subsystems, s)
	}
	return l, nil
}

func (l *legacy) mounted() ([]cgroup1.Subsystem, error) { return l.subsystems, nil }

func (l *legacy) apply(n name, limits Limits) error {
	resources := &specs.LinuxResources{CPU: &specs.LinuxCPU{Shares: &limits.CPUShares}}
	if limits.CPUPeriod != 0 {
		quota, memory := unlimited(limits.CPUQuota), unlimited(limits.Memory)
		resources.CPU.Quota, resources.CPU.Period = &quota, &limits.CPUPeriod
		resources.Memory = &specs.LinuxMemory{Limit: &memory}
		resources.Pids = &specs.LinuxPids{Limit: &limits.PIDs}
	}
	// It sets what is there already, too.
	_, err := cgroup1.New(cgroup1.StaticPath(n.path(l.driver)), resources, cgroup1.WithHierarchy(l.mounted))
	if err != nil || limits.CPUPeriod == 0 || limits.PIDs > 0 {
		return err
	}
	return ignoreAbsent(free(filepath.Join(mountPoint, string(cgroup1.Pids), n.path(l.driver)), "pids.max"))
}

// reserve does nothing: there is no such thing in v1.
func (l *legacy) reserve(name, Limits) error { return nil }

func unlimited(limit int64) int64 {
	if limit == 0 {
		return -1
	}
	return limit
}

func (l *legacy) exists(n name) bool {
	for _, dir := range l.dirs(n) {
		if !isDir(dir) {
			return false
		}
	}
	return true
}

func (l *legacy) remove(n name) error {
	var errs []error
	if l.driver == Systemd {
		group, err := cgroup1.Load(cgroup1.StaticPath(n.path(l.driver)), cgroup1.WithHierarchy(l.mounted))
		if err == nil {
			err = group.Delete()
		}
		if err != nil && !errors.Is(err, cgroup1.ErrCgroupDeleted) {
			errs = append(errs, err)
		}
	}
	for _, dir := range append(l.dirs(n), l.unified+n.path(l.driver)) {
		errs = append(errs, removeTree(dir))
	}
	return errors.Join(errs...)
}

func (l *legacy) children(n name) ([]string, error) {
	return childrenOf(append(l.dirs(n), l.unified+n.path(l.driver))...)
}

func (l *legacy) dirs(n name) []string {
	dirs := make([]string, len(l.roots))
	for i, root := range l.roots {
		dirs[i] = root + n.path(l.driver)
	}
	return dirs
}

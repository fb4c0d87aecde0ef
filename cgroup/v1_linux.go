package cgroup

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/containerd/cgroups/v3/cgroup1"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// legacy is cgroup v1: a hierarchy for each controller. A pod's cgroup is made where its limits are set. In the other hierarchies the runtime makes it, above that of a
// container, as it would make all of them; what it makes is removed here.
type legacy struct {
	driver Driver
	limits []cgroup1.Subsystem // what limits are set in, those that are mounted, and systemd itself where that makes slices
	limit  []string            // the mount points of these
	all    []string            // and of all that are mounted
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
		p, ok := s.(interface{ Path(path string) string })
		if !ok { // systemd
			l.limits = append(l.limits, s)
			continue
		}
		root := p.Path("/")
		if !isDir(root) {
			continue
		}
		l.all = append(l.all, root)
		switch s.Name() {
		case cgroup1.Cpu, cgroup1.Memory, cgroup1.Pids:
			l.limits, l.limit = append(l.limits, s), append(l.limit, root)
		}
	}
	return l, nil
}

func (l *legacy) limited() ([]cgroup1.Subsystem, error) { return l.limits, nil }

func (l *legacy) apply(n name, limits Limits) error {
	// The kernel makes a cgroup unlimited. It is told what does not limit only where something may have been limited before.
	fresh := !slices.ContainsFunc(l.dirs(n, l.limit), isDir)
	set := func(limit int64) bool { return limits.CPUPeriod != 0 && (limit != 0 || !fresh) }
	resources := &specs.LinuxResources{CPU: &specs.LinuxCPU{Shares: &limits.CPUShares}}
	quota, memory := unlimited(limits.CPUQuota), unlimited(limits.Memory)
	if set(limits.CPUQuota) {
		resources.CPU.Quota, resources.CPU.Period = &quota, &limits.CPUPeriod
	}
	if set(limits.Memory) {
		resources.Memory = &specs.LinuxMemory{Limit: &memory}
	}
	if limits.PIDs > 0 {
		resources.Pids = &specs.LinuxPids{Limit: &limits.PIDs}
	}
	// It sets what is there already, too.
	_, err := cgroup1.New(cgroup1.StaticPath(n.path(l.driver)), resources, cgroup1.WithHierarchy(l.limited))
	if err != nil || limits.PIDs > 0 || !set(limits.PIDs) {
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
	for _, dir := range l.dirs(n, l.limit) {
		if !isDir(dir) {
			return false
		}
	}
	return true
}

func (l *legacy) remove(n name) error {
	var errs []error
	if l.driver == Systemd {
		group, err := cgroup1.Load(cgroup1.StaticPath(n.path(l.driver)), cgroup1.WithHierarchy(l.limited))
		if err == nil {
			err = group.Delete()
		}
		if err != nil && !errors.Is(err, cgroup1.ErrCgroupDeleted) {
			errs = append(errs, err)
		}
	}
	for _, dir := range append(l.dirs(n, l.all), l.unified+n.path(l.driver)) {
		errs = append(errs, removeTree(dir))
	}
	return errors.Join(errs...)
}

func (l *legacy) children(n name) ([]string, error) {
	return childrenOf(append(l.dirs(n, l.all), l.unified+n.path(l.driver))...)
}

// dirs are a cgroup's directories below these mount points.
func (l *legacy) dirs(n name, roots []string) []string {
	dirs := make([]string, len(roots))
	for i, root := range roots {
		dirs[i] = root + n.path(l.driver)
	}
	return dirs
}

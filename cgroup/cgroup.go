package cgroup

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/cpu"
	"github.com/podmill/podmill/internal/qos"
)

// hierarchy is the kernel's cgroups, of one version.
type hierarchy interface {
	// apply makes the cgroup, with those above it, where it is not there, and sets it. What was limited before and is not any more is set too.
	apply(n name, l Limits) error
	// reserve sets only what of memory is reserved in a cgroup that is there.
	reserve(n name, l Limits) error
	exists(n name) bool
	// remove removes the cgroup and what is left below it, from the bottom up. It does not have to be there.
	remove(n name) error
	// children returns the names of the directories below a cgroup.
	children(n name) ([]string, error)
}

// Manager keeps the cgroups of pods. Its methods may be called concurrently.
type Manager struct {
	root   name
	driver Driver
	kernel hierarchy
	period uint64
	pids   int64 // 0 is no limit
	tiers  bool  // memory is reserved
	own    bool  // the root was not there before

	mu     sync.Mutex
	pods   map[types.UID]podState
	shares map[corev1.PodQOSClass]uint64 // as they were last set for the classes whose cgroups are there
	kept   Limits                        // what is reserved for all pods, as it was last set
}

// podState is what was made for a pod.
type podState struct {
	class  corev1.PodQOSClass
	limits Limits
}

// Option changes a default of a [Manager].
type Option func(*Manager)

// WithDriver is how cgroups are made; the default is [Cgroupfs]. It has to be what the runtime uses: see [CheckDriver].
func WithDriver(d Driver) Option { return func(m *Manager) { m.driver = d } }

// WithCPUPeriod is the period of CPU limits in microseconds, 1,000 to 1,000,000; the default is 100,000. A limit means the same
// with any.
func WithCPUPeriod(us uint64) Option { return func(m *Manager) { m.period = us } }

// WithMaxPIDs is how many processes and threads a pod may have, as the kubelet's --pod-max-pids; the default, and -1, is as many as it likes.
func WithMaxPIDs(n int64) Option { return func(m *Manager) { m.pids = max(0, n) } }

// WithMemoryReservation has the kernel keep the memory that pods request (KEP-2570, the kubelet's memoryReservationPolicy TieredReservation): it takes none of it away from
// guaranteed pods (memory.min), and that of burstable ones last (memory.low). On cgroup v1 it does nothing.
func WithMemoryReservation() Option { return func(m *Manager) { m.tiers = true } }

// New returns a manager that keeps the pods' cgroups below root, an absolute path in the kernel's hierarchies such as
// /podmill; "/" is the kubelet's own place. Two agents on one machine need different roots.
func New(root string, opts ...Option) (*Manager, error) {
	m := &Manager{driver: Cgroupfs, period: cpu.DefaultPeriod, pods: map[types.UID]podState{}, shares: map[corev1.PodQOSClass]uint64{}}
	for _, opt := range opts {
		opt(m)
	}
	if m.driver != Cgroupfs && m.driver != Systemd {
		return nil, fmt.Errorf("cgroup driver %q is not known; it is %s or %s", m.driver, Cgroupfs, Systemd)
	}
	if m.period < 1000 || m.period > 1_000_000 {
		return nil, fmt.Errorf("CPU period %d is not from 1000 to 1000000 microseconds", m.period)
	}
	var err error
	if m.root, err = parseRoot(root); err != nil {
		return nil, err
	}
	if m.kernel, err = newHierarchy(m.driver); err != nil {
		return nil, err
	}
	m.own = len(m.root) > 0 && !m.kernel.exists(m.root)
	return m, nil
}

// CheckDriver refuses a driver that is not the runtime's, which would put containers outside of their pods. A runtime that does
// not tell (reported is empty) is taken at the agent's word.
func CheckDriver(configured Driver, reported string) error {
	if reported == "" || string(configured) == reported {
		return nil
	}
	return fmt.Errorf("the cgroup driver is %s and the container runtime uses %s: configure the same on both sides (here --cgroup-driver; in containerd SystemdCgroup)", configured, reported)
}

// EnsureCgroup makes the pod's cgroup, or brings it up to date, and returns what the runtime is told to put the pod into. A pod that
// has what it needs costs one look.
func (m *Manager) EnsureCgroup(_ context.Context, pod *corev1.Pod) (parent string, err error) {
	want := podState{class: qos.Class(pod), limits: LimitsOf(pod, m.period)}
	if pod.Status.QOSClass != "" {
		want.class = pod.Status.QOSClass // the class is for life
	}
	want.limits.PIDs = m.pids
	if m.tiers {
		want.limits.reserve(want.class, pod)
	}
	n := m.root.class(want.class).child(podStep(pod.UID))
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pods[pod.UID] == want && m.kernel.exists(n) {
		return n.parent(m.driver), nil
	}
	if !m.kernel.exists(m.root.class(want.class)) {
		clear(m.shares)
	}
	if err := m.kernel.apply(n, want.limits); err != nil {
		return "", fmt.Errorf("make cgroup %s of pod %s: %w", n.path(m.driver), podmill.RefOf(pod), err)
	}
	m.pods[pod.UID] = want
	return n.parent(m.driver), m.weigh()
}

// RemoveCgroup removes the cgroups of a pod, of whatever class it was. It is idempotent, and fails while a process is in one.
func (m *Manager) RemoveCgroup(_ context.Context, pod types.UID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for _, class := range classes {
		n := m.root.class(class).child(podStep(pod))
		if err := m.kernel.remove(n); err != nil {
			errs = append(errs, fmt.Errorf("remove cgroup %s of pod %s: %w", n.path(m.driver), pod, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	delete(m.pods, pod)
	return m.weigh()
}

// Cleanup removes the cgroups of pods that nobody keeps.
func (m *Manager) Cleanup(ctx context.Context, keep func(types.UID) bool) error {
	stale := map[types.UID]bool{}
	var errs []error
	for _, class := range classes {
		dirs, err := m.kernel.children(m.root.class(class))
		if err != nil {
			errs = append(errs, fmt.Errorf("list the cgroups of %s pods: %w", class, err))
		}
		for _, dir := range dirs {
			if uid, ok := podOf(dir, m.driver); ok && !keep(uid) {
				stale[uid] = true
			}
		}
	}
	for uid := range stale {
		errs = append(errs, m.RemoveCgroup(ctx, uid))
	}
	return errors.Join(errs...)
}

// weigh sets how much CPU the classes of service get of what all want: burstable pods what they request together, best-effort pods the
// least. Guaranteed pods weigh by themselves, beside the two. When the last pod is gone the tree goes too.
func (m *Manager) weigh() error {
	if len(m.pods) == 0 {
		return m.prune()
	}
	var burstable uint64
	var all Limits
	held := map[corev1.PodQOSClass]bool{}
	for _, p := range m.pods {
		held[p.class] = true
		if p.class == corev1.PodQOSBurstable {
			burstable += p.limits.CPUShares
		}
		all.MemoryMin += p.limits.MemoryMin
		all.MemoryLow += p.limits.MemoryLow
	}
	if err := m.reserve(all); err != nil {
		return err
	}
	for class, shares := range map[corev1.PodQOSClass]uint64{corev1.PodQOSBurstable: burstable, corev1.PodQOSBestEffort: 0} {
		shares = min(max(shares, cpu.MinShares), cpu.MaxShares)
		if m.shares[class] == shares || m.shares[class] == 0 && !held[class] { // nobody has needed it yet
			continue
		}
		if err := m.kernel.apply(m.root.class(class), Limits{CPUShares: shares}); err != nil {
			return fmt.Errorf("set the share of %s pods: %w", class, err)
		}
		m.shares[class] = shares
	}
	return nil
}

// reserve keeps what is reserved for pods in the cgroups above them too: a cgroup has no more of it than those that it is in.
func (m *Manager) reserve(all Limits) error {
	if !m.tiers || all == m.kept {
		return nil
	}
	pods := m.root.child("kubepods")
	for depth := 1; depth <= len(pods); depth++ {
		if err := m.kernel.reserve(pods[:depth], all); err != nil {
			return fmt.Errorf("reserve memory for pods: %w", err)
		}
	}
	if burstable := m.root.class(corev1.PodQOSBurstable); m.kernel.exists(burstable) {
		if err := m.kernel.reserve(burstable, Limits{MemoryLow: all.MemoryLow}); err != nil {
			return fmt.Errorf("reserve memory for burstable pods: %w", err)
		}
	}
	m.kept = all
	return nil
}

// prune removes the classes' cgroups when no pod is in any, and the root if it was made here and is left empty.
func (m *Manager) prune() error {
	for _, class := range classes {
		dirs, err := m.kernel.children(m.root.class(class))
		if err != nil {
			return err
		}
		for _, dir := range dirs {
			if _, ok := podOf(dir, m.driver); ok {
				return nil // a pod from before this agent
			}
		}
	}
	clear(m.shares)
	m.kept = Limits{}
	if err := m.kernel.remove(m.root.child("kubepods")); err != nil || !m.own {
		return err
	}
	if dirs, err := m.kernel.children(m.root); err != nil || len(dirs) > 0 {
		return err
	}
	return m.kernel.remove(m.root)
}

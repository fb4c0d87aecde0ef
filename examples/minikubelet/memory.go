package main

import (
	"flag"
	"fmt"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/cgroup"
	"github.com/podmill/podmill/cri"
)

// memory is what the flags say of how pods share the machine's memory.
type memory struct {
	throttling  float64 // 0 is off
	reservation string
	swap        string
}

func (m *memory) define(flags *flag.FlagSet) {
	flags.Float64Var(&m.throttling, "memory-throttling-factor", 0, "how `far` from its request to its limit a container's memory may grow before it is slowed down, 0 to 1; 0 is off")
	flags.StringVar(&m.reservation, "memory-reservation-policy", "None", "None, or TieredReservation to keep the memory that pods request from being taken away")
	flags.StringVar(&m.swap, "memory-swap-behavior", "NoSwap", "NoSwap, or LimitedSwap to let burstable pods have the machine's swap")
}

func (m *memory) check() error {
	if m.reservation != "None" && m.reservation != "TieredReservation" {
		return fmt.Errorf("--memory-reservation-policy %q is not known: give None or TieredReservation", m.reservation)
	}
	if m.swap != "NoSwap" && m.swap != "LimitedSwap" {
		return fmt.Errorf("--memory-swap-behavior %q is not known: give NoSwap or LimitedSwap", m.swap)
	}
	return nil
}

func (m *memory) reserved() bool { return m.reservation != "None" }

// ofContainers are the options for containers on a machine with these resources.
func (m *memory) ofContainers(machine corev1.ResourceList) []cri.Option {
	opts := []cri.Option{cri.WithMemoryQoS(m.throttling, machine.Memory().Value())}
	if m.reserved() {
		opts = append(opts, cri.WithMemoryReservation())
	}
	var info unix.Sysinfo_t
	if m.swap != "NoSwap" && unix.Sysinfo(&info) == nil {
		opts = append(opts, cri.WithLimitedSwap(machine.Memory().Value(), int64(info.Totalswap)*int64(info.Unit))) //nolint:gosec // less than an exbibyte
	}
	return opts
}

// cgroups are the options for the cgroups of pods.
func (c *config) cgroups() []cgroup.Option {
	opts := []cgroup.Option{cgroup.WithMaxPIDs(c.maxPIDs)}
	if c.memory.reserved() {
		opts = append(opts, cgroup.WithMemoryReservation())
	}
	return opts
}

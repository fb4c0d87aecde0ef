package cri

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"github.com/podmill/podmill/internal/cpu"
)

// Option changes a default of a [Client].
type Option func(*options)

type options struct {
	timeout     time.Duration
	patience    time.Duration
	starts      int
	cpuPeriod   time.Duration
	seccompRoot string
	memoryQoS   memoryQoS
	swap        swap
	observer    Observer
}

func defaults() options {
	return options{
		timeout:     2 * time.Minute,
		patience:    10 * time.Second,
		starts:      runtime.NumCPU(),
		cpuPeriod:   cpu.DefaultPeriod * time.Microsecond,
		seccompRoot: "/var/lib/kubelet/seccomp",
	}
}

// WithTimeout is how long the runtime may take for a call, beside the grace period of a stop; running a sandbox, with its network, may take twice
// as long. The default is the kubelet's 2 minutes. Pulls and commands take as long as their contexts let them.
func WithTimeout(d time.Duration) Option { return func(o *options) { o.timeout = d } }

// WithPatience is how long [Dial] waits for a runtime that is not there yet, or not ready; the default is 10 s, and 0 tries once.
func WithPatience(d time.Duration) Option { return func(o *options) { o.patience = d } }

// WithParallelStarts is how many sandboxes and containers are run, created or started at a time while no processor is idle; the default is one for each processor, and
// 0 sets no bound. It makes a burst of pods take less time, and most of them far less: what has been begun is brought to its end first, and pods of higher priority come before others.
// Processors that are idle let more in, and a call counts for three seconds at most: runtimes that wait for a network, and calls that hang, hold nobody up. It bounds
// nothing where there is no /proc/stat.
func WithParallelStarts(n int) Option { return func(o *options) { o.starts = n } }

// WithCPUPeriod is the period of CPU limits, 1 ms to 1 s; the default is 100 ms. A limit means the same with any.
func WithCPUPeriod(d time.Duration) Option { return func(o *options) { o.cpuPeriod = d } }

// WithSeccompRoot is the absolute directory below which Localhost seccomp profiles are; the default is the kubelet's
// /var/lib/kubelet/seccomp.
func WithSeccompRoot(dir string) Option { return func(o *options) { o.seccompRoot = dir } }

// WithMemoryQoS has the kernel slow down a container whose memory comes near its limit, before it is killed at the limit (KEP-2570, memory.high of cgroup v2; on
// v1 it does nothing). The factor, 0 to 1, is the kubelet's memoryThrottlingFactor: that far from the request to the limit or, without one, to allocatable,
// which is what the node has for pods in bytes. It takes effect with the next start of a container, and so does leaving it away.
func WithMemoryQoS(factor float64, allocatable int64) Option {
	return func(o *options) { o.memoryQoS.factor, o.memoryQoS.allocatable = factor, allocatable }
}

// WithMemoryReservation has the kernel keep the memory that containers request, as cgroup.WithMemoryReservation does for their pods (KEP-2570, the kubelet's
// memoryReservationPolicy TieredReservation): that of guaranteed pods in any case, that of burstable ones as long as it can. On cgroup v1 it does nothing.
func WithMemoryReservation() Option { return func(o *options) { o.memoryQoS.tiers = true } }

// WithLimitedSwap lets containers of burstable pods have swap (KEP-2400, the kubelet's swapBehavior LimitedSwap): of the node's swap as much as they request of its memory,
// both in bytes. Without it no container has any, where the kernel can say so; on cgroup v1 none has in any case.
func WithLimitedSwap(nodeMemory, nodeSwap int64) Option {
	return func(o *options) { o.swap = swap{memory: nodeMemory, swap: nodeSwap} }
}

// WithObserver says who is told of calls.
func WithObserver(observer Observer) Option { return func(o *options) { o.observer = observer } }

func (o *options) validate() error {
	var errs []error
	if o.timeout <= 0 {
		errs = append(errs, fmt.Errorf("timeout %v is not positive", o.timeout))
	}
	if o.starts < 0 {
		errs = append(errs, fmt.Errorf("%d parallel starts are none", o.starts))
	}
	if o.cpuPeriod < time.Millisecond || o.cpuPeriod > time.Second {
		errs = append(errs, fmt.Errorf("CPU period %v is not between 1ms and 1s", o.cpuPeriod))
	}
	if f := o.memoryQoS.factor; !(f >= 0 && f <= 1) || o.memoryQoS.allocatable < 0 {
		errs = append(errs, fmt.Errorf("memory throttling factor %v is not between 0 and 1, or %d bytes are none", f, o.memoryQoS.allocatable))
	}
	if o.swap.memory < 0 || o.swap.swap < 0 {
		errs = append(errs, fmt.Errorf("%d bytes of memory, or %d of swap, are none", o.swap.memory, o.swap.swap))
	}
	if !filepath.IsAbs(o.seccompRoot) {
		errs = append(errs, fmt.Errorf("seccomp root %q is not an absolute path", o.seccompRoot))
	}
	return errors.Join(errs...)
}

// Observer is told of what a client does. A nil func is not called; each returns at once.
type Observer struct {
	// Called follows each call, with CRI's name of the method. The code of an error is found with gRPC's status.Code.
	Called func(method string, took time.Duration, err error)
}

// Package cpu turns thousandths of a CPU, in which pods ask, into the units of the kernel's schedulers.
package cpu

import "math"

// The kernel's bounds of cpu.shares, and the shares of one CPU.
const (
	MinShares    = 2
	MaxShares    = 262144
	sharesPerCPU = 1024
)

// DefaultPeriod is the period of a CPU quota, in microseconds, unless an agent is told another.
const DefaultPeriod = 100_000

// minQuota is the least that the kernel takes, in microseconds.
const minQuota = 1000

// Shares returns the cpu.shares (cgroup v1) of a request. Nothing asked is the least.
func Shares(milli int64) uint64 {
	// Bounded before the multiplication, which an absurd request would overflow.
	milli = min(max(milli, 0), MaxShares)
	return uint64(min(max(milli*sharesPerCPU/1000, MinShares), MaxShares))
}

// OfShares returns the request, in thousandths of a CPU, that makes such shares; 0 where they are the least.
func OfShares(shares int64) int64 {
	if shares <= MinShares {
		return 0
	}
	return (min(shares, MaxShares)*1000 + sharesPerCPU - 1) / sharesPerCPU
}

// OfQuota returns the limit, in thousandths of a CPU, that a quota makes; 0 is none.
func OfQuota(quota, period int64) int64 {
	if quota <= 0 || period <= 0 {
		return 0
	}
	return min(quota, math.MaxInt64/1000) * 1000 / period
}

// Quota returns how many microseconds of each period a limit allows; 0 is no limit.
func Quota(milli, period int64) int64 {
	if milli <= 0 || period <= 0 {
		return 0
	}
	if milli > math.MaxInt64/period {
		return math.MaxInt64 / 1000
	}
	return max(milli*period/1000, minQuota)
}

// Weight returns the cpu.weight (cgroup v2) of shares, 1 to 10000. It is the conversion that OCI runtimes and the kubelet have agreed on since
// 2025: it maps the least, one CPU and the most to 1, 100 and 10000, so that a container of one CPU weighs as much as the
// kernel's default. The older, linear one gave it 39.
func Weight(shares uint64) uint64 {
	switch {
	case shares <= MinShares:
		return 1
	case shares >= MaxShares:
		return 10000
	}
	l := math.Log2(float64(shares))
	return uint64(math.Ceil(math.Pow(10, (l*l+125*l)/612-7.0/34)))
}

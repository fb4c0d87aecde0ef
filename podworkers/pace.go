package podworkers

import "time"

// pace is how often a pod is synced. Random spreads the pods of a node, so that what began together does not stay together.
type pace struct {
	resync     time.Duration // zero or less: never
	backoff    time.Duration // after the first failure
	maxBackoff time.Duration
	random     float64 // 0 <= random < 1
}

// next is when the next sync after a good one comes if nothing happens, zero if it does not: the interval and up to half of it more, as
// in the kubelet.
func (p pace) next(now time.Time) time.Time {
	if p.resync <= 0 {
		return time.Time{}
	}
	return now.Add(p.resync + time.Duration(p.random*float64(p.resync)/2))
}

// retry is how long to wait after that many failures in a row: twice as long each time up to the limit, less up to a half.
func (p pace) retry(failures int32) time.Duration {
	d := p.maxBackoff
	if doublings := failures - 1; doublings < 32 && p.backoff < p.maxBackoff>>doublings {
		d = p.backoff << doublings
	}
	return d - time.Duration(p.random*float64(d)/2)
}

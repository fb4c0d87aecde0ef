package syncpod

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The kubelet's figures for a container that ends again and again.
const (
	backoffStart = 10 * time.Second
	backoffMax   = 5 * time.Minute
	// backoffReset is how long a container has to run for its past to be forgotten.
	backoffReset = 10 * time.Minute
)

// Backoff is how long a container has to wait before it starts again. It is a value: the zero one is that of a container which has
// never been restarted, and whose first restart is at once.
type Backoff struct {
	Delay time.Duration
	Since time.Time // when the wait was over and the container was started
}

// BackoffKey is under what a container's back-off is kept in [Input]. Another image is another container, and starts afresh.
func BackoffKey(c *corev1.Container) string { return c.Name + " " + c.Image }

// Wait returns how much longer a container that ended at finished has to wait. The delay counts from the end, so that time spent
// running is not waited for twice. It is never more than the whole delay, whatever a clock says that was set back; nor does one that was set forward, or a runtime
// that tells no time, make it less than what is left of it since the start.
func (b Backoff) Wait(finished, now time.Time) time.Duration {
	if b.forgotten(finished) {
		return 0
	}
	if finished.Before(b.Since) {
		finished = b.Since
	}
	return min(max(0, finished.Add(b.Delay).Sub(now)), b.Delay)
}

// Next returns the back-off of a container that ended at finished and is started now. It is never longer than limit, which may be shorter than
// the first back-off is by default; zero is five minutes.
func (b Backoff) Next(finished, now time.Time, limit time.Duration) Backoff {
	if limit == 0 {
		limit = backoffMax
	}
	if b.Delay == 0 || b.forgotten(finished) {
		return Backoff{Delay: min(backoffStart, limit), Since: now}
	}
	return Backoff{Delay: min(2*b.Delay, limit), Since: now}
}

func (b Backoff) forgotten(finished time.Time) bool { return finished.Sub(b.Since) > backoffReset }

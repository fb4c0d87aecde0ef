package podmill

import "time"

// Kill asks for the end of a pod. The zero value is a plain removal with the pod's own grace period.
type Kill struct {
	// GracePeriodSeconds is instead of the pod's own grace period where it is neither nil nor negative; 0 is at once. More than the pod has only its
	// deletion can give it.
	GracePeriodSeconds *int64
	// Reason and Message are what the pod's final status says, such as "Evicted" or "DeadlineExceeded". Where Reason is
	// empty the status is what the containers make it.
	Reason  string
	Message string
}

// Termination is the end of a pod, under way. While it lasts the deadline may come nearer and never recedes.
type Termination struct {
	// Deadline is when the last container has to be told to die.
	Deadline time.Time
	// GracePeriodSeconds is the whole grace that Deadline was made of.
	GracePeriodSeconds int64
	// Reason and Message are those of the first [Kill] that gave one.
	Reason  string
	Message string
}

// Remaining returns how much of the grace is left at now, never less than zero.
func (t Termination) Remaining(now time.Time) time.Duration {
	return max(0, t.Deadline.Sub(now))
}

package syncpod

import (
	"context"
	"errors"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// errOutOfTime ends what is under way for a pod when its time is up: a pull that hangs does not keep a pod alive.
var errOutOfTime = errors.New("the pod's active deadline has passed")

// outOfTime is the end of a pod that was active for as long as it may be, in the kubelet's words.
func outOfTime() *podmill.Kill {
	return &podmill.Kill{Reason: eventDeadlineExceeded, Message: "Pod was active on the node longer than the specified deadline"}
}

// activeDeadline returns until when a pod may be active; not ok is for ever.
func activeDeadline(pod *corev1.Pod, started time.Time) (at time.Time, ok bool) {
	seconds := pod.Spec.ActiveDeadlineSeconds
	if seconds == nil {
		return time.Time{}, false
	}
	return started.Add(time.Duration(min(*seconds, math.MaxInt32)) * time.Second), true
}

// activeSince returns since when a pod counts as active, given its last status. What is in there was told by the wall clock; from now on it is the
// monotonic one that counts, so that a clock which jumps moves no deadline.
func activeSince(status *corev1.PodStatus, now time.Time) time.Time {
	if status.StartTime == nil {
		return now
	}
	return now.Add(-max(0, now.Sub(status.StartTime.Time)))
}

// untilDeadline returns a context that ends, for errOutOfTime, when the pod's time is up. One whose time was up before needs none: the plan has the
// say, and finds perhaps that its work was done.
func untilDeadline(ctx context.Context, pod *corev1.Pod, started time.Time) (context.Context, context.CancelFunc) {
	at, ok := activeDeadline(pod, started)
	if !ok || !time.Now().Before(at) {
		return ctx, func() {}
	}
	return context.WithDeadlineCause(ctx, at, errOutOfTime)
}

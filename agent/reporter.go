package agent

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/status"
)

// reporter joins the hands with the status: what a sync saw becomes a status, and is on its way.
type reporter struct {
	statuses *status.Manager
	runtime  *runtimeState
	hostIPs  []string
	wanted   func(types.UID) bool // whether a source wants the pod

	mu    sync.Mutex
	ended map[types.UID]bool // pods whose last report said that they end
}

// Report makes and delivers the pod's status.
func (r *reporter) Report(_ context.Context, pod *corev1.Pod, seen *podmill.RuntimePod, p podmill.Progress) error {
	next := status.Generate(status.Input{
		Pod: pod, Seen: seen, Progress: p, Last: r.last(pod, p), Runtime: r.runtime.name(), HostIPs: r.hostIPs,
	}, time.Now())
	r.statuses.Set(pod, next)
	if p.Removed && (pod.DeletionTimestamp != nil || !r.wanted(pod.UID)) {
		r.statuses.Finish(pod)
	}
	return nil
}

// last returns the newest status of a pod. A pod that had ended and is synced again is another one under the same UID, such as a manifest that
// was removed and put back: it starts with no past.
func (r *reporter) last(pod *corev1.Pod, p podmill.Progress) *corev1.PodStatus {
	r.mu.Lock()
	again := r.ended[pod.UID] && p.Termination == nil
	r.ended[pod.UID] = p.Termination != nil
	r.mu.Unlock()
	if again {
		return nil
	}
	if known, ok := r.statuses.Status(pod.UID); ok {
		return &known
	}
	return &pod.Status
}

// Cleanup forgets pods that nobody keeps, when their last status has gone out.
func (r *reporter) Cleanup(_ context.Context, keep func(types.UID) bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for uid := range r.ended {
		if _, told := r.statuses.Status(uid); !told && !keep(uid) {
			delete(r.ended, uid)
		}
	}
	return nil
}

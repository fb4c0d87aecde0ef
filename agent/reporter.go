package agent

import (
	"context"
	"sync"

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
	r.statuses.Report(status.Input{
		Pod: pod, Seen: seen, Progress: p, Last: r.last(pod, p), Runtime: r.runtime.name(), HostIPs: r.hostIPs,
	})
	if p.Removed && (pod.DeletionTimestamp != nil || !r.wanted(pod.UID)) {
		r.statuses.Finish(pod)
	}
	return nil
}

// last returns the past of a pod that has none, and nil for any other: the manager knows it. A pod that had ended and is synced again is another one under the same UID, such
// as a manifest that was removed and put back.
func (r *reporter) last(pod *corev1.Pod, p podmill.Progress) *corev1.PodStatus {
	r.mu.Lock()
	again := r.ended[pod.UID] && p.Termination == nil
	r.ended[pod.UID] = p.Termination != nil
	r.mu.Unlock()
	if again {
		return &corev1.PodStatus{}
	}
	return nil
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

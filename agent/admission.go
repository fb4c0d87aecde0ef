package agent

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/admission"
	"github.com/podmill/podmill/internal/qos"
	"github.com/podmill/podmill/syncloop"
)

// gate returns who takes pods from the loop: the workers, or who stands before them.
func (a *Agent) gate() syncloop.Workers {
	if a.opts.admission == nil {
		return a.workers
	}
	a.admission = admission.NewGate(a.workers, admission.Surroundings{
		Node: a.opts.admission, Status: a.statuses.Status, Reject: a.reject, Preempt: a.preempt, Retry: a.inbox.Put, Finish: a.statuses.Finish,
	})
	return a.admission
}

// room is for a pod that wants other resources than it has.
func (a *Agent) room(has, wants *corev1.Pod) (reason, message string) {
	if a.admission == nil {
		return "", ""
	}
	return a.admission.Resize(has, wants)
}

// retryResizes looks at resizes again that were deferred, when a pod has gone.
func (a *Agent) retryResizes(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.freed:
			if a.admission != nil {
				a.admission.Freed()
			}
		}
	}
}

// reject tells that a pod cannot run here, in the kubelet's words.
func (a *Agent) reject(pod *corev1.Pod, rejection *admission.Rejection) {
	status := corev1.PodStatus{
		ObservedGeneration: pod.Generation, Phase: corev1.PodFailed, QOSClass: pod.Status.QOSClass,
		Reason: rejection.Reason, Message: "Pod was rejected: " + rejection.Message,
	}
	if status.QOSClass == "" {
		status.QOSClass = qos.Class(pod)
	}
	if a.opts.events != nil {
		a.opts.events.Event(podmill.ReferenceTo(pod, ""), corev1.EventTypeWarning, rejection.Reason, rejection.Message)
	}
	a.statuses.Set(pod, status)
}

// preempt ends a pod for the sake of a critical one, in the kubelet's words. The workers go on until it has ended.
func (a *Agent) preempt(victim *corev1.Pod) {
	const reason, message = "Preempting", "Preempted in order to admit critical pod"
	if a.opts.events != nil {
		a.opts.events.Event(podmill.ReferenceTo(victim, ""), corev1.EventTypeWarning, reason, message)
	}
	a.workers.Kill(victim.UID, podmill.Kill{Reason: reason, Message: message})
}

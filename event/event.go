package event

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// Func is a recorder that is a func. It must keep the recorder's promises: it does not block and may be called concurrently.
type Func func(about corev1.ObjectReference, eventType, reason, message string)

// Event calls the func, if there is one.
func (f Func) Event(about corev1.ObjectReference, eventType, reason, message string) {
	if f != nil {
		f(about, eventType, reason, message)
	}
}

// Discard returns a recorder that forgets.
func Discard() podmill.EventRecorder { return Func(nil) }

// Tee returns a recorder that gives every event to each of the recorders, in their order.
func Tee(recorders ...podmill.EventRecorder) podmill.EventRecorder {
	return Func(func(about corev1.ObjectReference, eventType, reason, message string) {
		for _, r := range recorders {
			r.Event(about, eventType, reason, message)
		}
	})
}

package syncpod

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

func (s *Syncer) event(pod *corev1.Pod, container, eventType, reason, message string) {
	if s.events != nil {
		s.events.Event(podmill.ReferenceTo(pod, container), eventType, reason, message)
	}
}

// tellFailure tells people of an error, and returns it. That a pod was told to end meanwhile is not one.
func (s *Syncer) tellFailure(ctx context.Context, pod *corev1.Pod, reason, prefix string, err error) error {
	if err != nil && ctx.Err() == nil {
		s.event(pod, "", corev1.EventTypeWarning, reason, prefix+err.Error())
	}
	return err
}

// step makes one step and tells the observer.
func (s *Syncer) step(pod *corev1.Pod, name, container string, do func() error) error {
	return s.observer.did(podmill.RefOf(pod), name, container, do)
}

// tellWaits tells people, once for each time, that a container has to wait.
func (s *Syncer) tellWaits(pod *corev1.Pod, m *memory, a *Actions) {
	for name, why := range a.Waiting {
		if why.Reason != reasonCrashLoop {
			continue
		}
		attempt := m.known[name].Attempt + 1 // zero is none
		if m.told[name] == attempt {
			continue
		}
		m.told[name] = attempt
		s.event(pod, name, corev1.EventTypeWarning, eventBackOff, fmt.Sprintf(
			"Back-off restarting failed container %s in pod %s_%s(%s)", name, pod.Name, pod.Namespace, pod.UID))
	}
}

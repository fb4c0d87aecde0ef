package probe

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// saying is what a result gives cause to say, once nobody holds the lock.
type saying struct {
	pod     *corev1.Pod
	run     Run
	warning bool
	changed bool
	givenUp bool
}

// tell tells the loop first, which acts, and then those who read.
func (m *Manager) tell(said []saying) {
	for i := range said {
		s := &said[i]
		if s.changed {
			m.notify(s.pod.UID)
		}
		m.opts.observer.probed(s.run)
		if s.givenUp {
			m.opts.observer.givenUp(s.run.Pod, s.run.Container, s.run.Type)
		}
		if reason, message := s.event(); reason != "" && m.opts.events != nil {
			m.opts.events.Event(podmill.ReferenceTo(s.pod, s.run.Container), corev1.EventTypeWarning, reason, message)
		}
	}
}

// event returns the kubelet's words for a result that people should know.
func (s *saying) event() (reason, message string) {
	switch {
	case s.run.Result == Failed:
		return "Unhealthy", fmt.Sprintf("%s probe failed: %s", s.run.Type, s.run.Message)
	case s.run.Result == Unknown:
		return "Unhealthy", fmt.Sprintf("%s probe errored and resulted in unknown state: %s", s.run.Type, s.run.Message)
	case s.warning:
		return "ProbeWarning", fmt.Sprintf("%s probe warning: %s", s.run.Type, s.run.Message)
	default:
		return "", ""
	}
}

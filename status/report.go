package status

import "time"

// Report makes a pod's next status of in, and sets it: [Generate] and [Manager.Set] in one. Where in.Last is nil the last status is the newest that was set or, of a pod
// of which none was, the pod's own.
func (m *Manager) Report(in Input) {
	if in.Last == nil {
		in.Last = &in.Pod.Status
		if newest, ok := m.Status(in.Pod.UID); ok {
			in.Last = &newest
		}
	}
	m.Set(in.Pod, Generate(in, time.Now()))
}

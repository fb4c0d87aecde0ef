package pleg

import (
	"slices"

	"github.com/podmill/podmill"
)

// diff tells what happened between two observations of a pod: old may be nil, and now is empty when the pod is gone. Both states of a
// container that was replaced in between are told, the end of the old one first. Nothing changed is nil, and allocates nothing.
func diff(old, now *podmill.RuntimePod) []Event {
	if old == nil {
		old = &podmill.RuntimePod{}
	}
	d := differ{pod: now.PodRef}
	if now.Empty() {
		d.pod = old.PodRef
	}
	for i := len(old.Sandboxes) - 1; i >= 0; i-- {
		if was := &old.Sandboxes[i]; sandboxByID(now, was.ID) == nil {
			d.gone(was.ID, stateOf(was))
		}
	}
	for i := len(old.Containers) - 1; i >= 0; i-- {
		if was := &old.Containers[i]; containerByID(now, was.ID) == nil {
			d.gone(was.ID, was.State)
		}
	}
	for i := len(now.Sandboxes) - 1; i >= 0; i-- {
		d.sandbox(sandboxByID(old, now.Sandboxes[i].ID), &now.Sandboxes[i])
	}
	for i := len(now.Containers) - 1; i >= 0; i-- {
		d.container(containerByID(old, now.Containers[i].ID), &now.Containers[i])
	}
	if d.other {
		d.tell(PodSync, "")
	}
	return d.events
}

// differ gathers the events of one pod.
type differ struct {
	pod    podmill.PodRef
	events []Event
	other  bool // something changed that is no step in a life
}

func (d *differ) tell(t EventType, id string) {
	d.events = append(d.events, Event{Pod: d.pod, Type: t, ID: id})
}

// gone tells of what is no longer there; it has died first, seen or not.
func (d *differ) gone(id string, was podmill.State) {
	if was != podmill.StateExited {
		d.tell(ContainerDied, id)
	}
	d.tell(ContainerRemoved, id)
}

// step tells that something is in a new state.
func (d *differ) step(id string, now podmill.State) {
	switch now {
	case podmill.StateRunning:
		d.tell(ContainerStarted, id)
	case podmill.StateExited:
		d.tell(ContainerDied, id)
	default:
		d.tell(ContainerChanged, id)
	}
}

func (d *differ) sandbox(was, now *podmill.Sandbox) {
	if was == nil || was.Ready != now.Ready {
		d.step(now.ID, stateOf(now))
		return
	}
	d.other = d.other || !slices.Equal(was.IPs, now.IPs)
}

func (d *differ) container(was, now *podmill.Container) {
	if was == nil || was.State != now.State {
		d.step(now.ID, now.State)
		return
	}
	d.other = d.other || was.ExitCode != now.ExitCode || was.Reason != now.Reason || was.Message != now.Message ||
		!was.StartedAt.Equal(now.StartedAt) || !was.FinishedAt.Equal(now.FinishedAt)
}

func stateOf(s *podmill.Sandbox) podmill.State {
	if s.Ready {
		return podmill.StateRunning
	}
	return podmill.StateExited
}

func sandboxByID(pod *podmill.RuntimePod, id string) *podmill.Sandbox {
	for i := range pod.Sandboxes {
		if pod.Sandboxes[i].ID == id {
			return &pod.Sandboxes[i]
		}
	}
	return nil
}

func containerByID(pod *podmill.RuntimePod, id string) *podmill.Container {
	for i := range pod.Containers {
		if pod.Containers[i].ID == id {
			return &pod.Containers[i]
		}
	}
	return nil
}

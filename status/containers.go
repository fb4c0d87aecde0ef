package status

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/lifecycle"
)

// Reasons that this package gives by itself. The others come with the observation or the progress of a pod.
const (
	reasonContainerCreating = "ContainerCreating"
	reasonPodInitializing   = "PodInitializing"
	reasonCompleted         = "Completed"
	reasonError             = "Error"
	reasonUnknown           = "ContainerStatusUnknown"
)

type kind int

const (
	initContainer kind = iota
	appContainer
	ephemeralContainer
)

// containers makes the statuses of a pod's containers.
type containers struct {
	in          *Input
	initialized bool
}

func (cs *containers) statuses(specs []corev1.Container, last []corev1.ContainerStatus, k kind) []corev1.ContainerStatus {
	if len(specs) == 0 {
		return nil
	}
	out := make([]corev1.ContainerStatus, len(specs))
	for i := range specs {
		old := &corev1.ContainerStatus{}
		if at := slices.IndexFunc(last, func(s corev1.ContainerStatus) bool { return s.Name == specs[i].Name }); at >= 0 {
			old = &last[at]
		}
		out[i] = cs.status(&specs[i], old, k)
	}
	return out
}

// status makes the status of one container from its newest instance, from what was last told of it, and from why it waits.
func (cs *containers) status(spec *corev1.Container, old *corev1.ContainerStatus, k kind) corev1.ContainerStatus {
	status := corev1.ContainerStatus{
		Name:                 spec.Name,
		Image:                spec.Image,
		ImageID:              old.ImageID,
		ContainerID:          old.ContainerID,
		RestartCount:         old.RestartCount,
		LastTerminationState: old.LastTerminationState,
	}
	if newest := cs.in.Seen.Container(spec.Name); newest != nil {
		cs.observed(&status, newest, old)
	} else {
		cs.unobserved(&status, old, k)
	}
	cs.wait(&status)
	started := status.State.Running != nil
	status.Started = &started
	status.Ready = started
	if k == initContainer && !sidecar(spec) {
		status.Ready = status.State.Terminated != nil && status.State.Terminated.ExitCode == 0
	}
	return status
}

// observed fills a status from the container's newest instance in the runtime.
func (cs *containers) observed(status *corev1.ContainerStatus, c *podmill.Container, old *corev1.ContainerStatus) {
	status.ContainerID = cs.id(c.ID)
	status.RestartCount = max(old.RestartCount, int32(min(c.Attempt, 1<<31-1))) //nolint:gosec // bounded by min
	if c.Image != "" {
		status.Image = c.Image
	}
	if c.ImageID != "" {
		status.ImageID = c.ImageID
	}
	if previous := cs.previous(c); previous != nil {
		status.LastTerminationState = corev1.ContainerState{Terminated: cs.terminated(previous)}
	} else if old.State.Terminated != nil && old.State.Terminated.ContainerID != status.ContainerID {
		// What was told as the end of the instance before this one, and has been collected since.
		status.LastTerminationState = old.State
	}
	switch c.State {
	case podmill.StateRunning:
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: seconds(c.StartedAt)}
	case podmill.StateExited:
		status.State.Terminated = cs.terminated(c)
	case podmill.StateCreated:
		status.State.Waiting = &corev1.ContainerStateWaiting{Reason: reasonContainerCreating}
	default:
		// The runtime cannot say. A container that was told to run is held to run until somebody knows better.
		status.State = old.State
		if status.State == (corev1.ContainerState{}) {
			status.State.Waiting = &corev1.ContainerStateWaiting{Reason: reasonContainerCreating}
		}
	}
}

// unobserved fills a status of a container that the runtime does not hold: it has not been created yet, or its dead instance was
// collected, or it vanished.
func (cs *containers) unobserved(status *corev1.ContainerStatus, old *corev1.ContainerStatus, k kind) {
	switch {
	case old.State.Terminated != nil:
		status.State = old.State
		return
	case old.State.Running != nil:
		status.LastTerminationState.Terminated = vanished(old, "The container could not be located when the pod was deleted.  The container used to be Running")
		if cs.in.Progress.Stopped || cs.in.Pod.Spec.RestartPolicy == corev1.RestartPolicyNever {
			status.State.Terminated = vanished(old, "The container could not be located when the pod was terminated")
			return
		}
	}
	reason := reasonContainerCreating
	if k == appContainer && len(cs.in.Pod.Spec.InitContainers) > 0 && !cs.initialized {
		reason = reasonPodInitializing
	}
	status.State.Waiting = &corev1.ContainerStateWaiting{Reason: reason}
}

// wait shows why a container that does not run, and should, does not.
func (cs *containers) wait(status *corev1.ContainerStatus) {
	waiting, ok := cs.in.Progress.Waiting[status.Name]
	if !ok || status.State.Running != nil {
		return
	}
	if status.State.Terminated != nil {
		status.LastTerminationState = corev1.ContainerState{Terminated: status.State.Terminated}
	}
	status.State = corev1.ContainerState{Waiting: &waiting}
}

// previous returns the instance before c that has exited, nil if the runtime no longer holds one.
func (cs *containers) previous(c *podmill.Container) *podmill.Container {
	for i := range cs.in.Seen.Containers {
		p := &cs.in.Seen.Containers[i]
		if p.Name == c.Name && p.Attempt < c.Attempt && p.State == podmill.StateExited {
			return p
		}
	}
	return nil
}

func (cs *containers) terminated(c *podmill.Container) *corev1.ContainerStateTerminated {
	t := &corev1.ContainerStateTerminated{
		ExitCode:    c.ExitCode,
		Reason:      c.Reason,
		Message:     c.Message,
		StartedAt:   seconds(c.StartedAt),
		FinishedAt:  seconds(c.FinishedAt),
		ContainerID: cs.id(c.ID),
	}
	switch {
	case t.Reason != "":
	case c.ExitCode == 0:
		t.Reason = reasonCompleted
	default:
		t.Reason = reasonError
	}
	return t
}

func (cs *containers) id(id string) string {
	if cs.in.Runtime == "" {
		return id
	}
	return cs.in.Runtime + "://" + id
}

func vanished(old *corev1.ContainerStatus, message string) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{
		ExitCode: lifecycle.ExitUnknown, Reason: reasonUnknown, Message: message,
		StartedAt: old.State.Running.StartedAt, ContainerID: old.ContainerID,
	}
}

package status

import (
	"path"
	"slices"
	"strings"
	"unicode/utf8"

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
	in *Input
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
		cs.unobserved(&status, spec, old, k)
	}
	cs.wait(&status, spec, old, k)
	cs.health(&status, spec, old, k)
	status.StopSignal = cs.stopSignal(spec, old)
	status.VolumeMounts = cs.mounts(spec, old)
	status.State.Terminated = cs.limited(status.State.Terminated)
	status.LastTerminationState.Terminated = cs.limited(status.LastTerminationState.Terminated)
	return status
}

// mounts says of the volumes that a container mounts how far those are read-only that are to be (KEP-3857). It is known when there is an instance, and stays.
func (cs *containers) mounts(spec *corev1.Container, old *corev1.ContainerStatus) []corev1.VolumeMountStatus {
	newest := cs.in.Seen.Container(spec.Name)
	if newest == nil {
		return old.VolumeMounts
	}
	var out []corev1.VolumeMountStatus
	for i := range spec.VolumeMounts {
		m := &spec.VolumeMounts[i]
		mount := corev1.VolumeMountStatus{Name: m.Name, MountPath: m.MountPath, ReadOnly: m.ReadOnly}
		if m.ReadOnly {
			mode := corev1.RecursiveReadOnlyDisabled
			if slices.Contains(newest.ReadOnlyBelow, path.Clean("/"+m.MountPath)) {
				mode = corev1.RecursiveReadOnlyEnabled
			}
			mount.RecursiveReadOnly = &mode
		}
		out = append(out, mount)
	}
	return out
}

// stopSignal is the signal that a container is told to stop with: as the runtime says or, where it does not, as the spec does. One that has been collected keeps what was told of it.
func (cs *containers) stopSignal(spec *corev1.Container, old *corev1.ContainerStatus) *corev1.Signal {
	switch newest := cs.in.Seen.Container(spec.Name); {
	case newest != nil && newest.StopSignal != "":
		signal := corev1.Signal(newest.StopSignal)
		return &signal
	case newest == nil && old.StopSignal != nil:
		return old.StopSignal
	case spec.Lifecycle == nil:
		return nil
	}
	return spec.Lifecycle.StopSignal
}

// health says whether a container is started and ready. Of an ephemeral container neither is ever said, and an init container is ready when it has
// succeeded.
func (cs *containers) health(status *corev1.ContainerStatus, spec *corev1.Container, old *corev1.ContainerStatus, k kind) {
	if k == ephemeralContainer {
		return
	}
	var started, ready bool
	if newest := cs.in.Seen.Container(spec.Name); status.State.Running != nil && newest != nil {
		h, probed := cs.in.Progress.Health[newest.ID]
		switch {
		case newest.State == podmill.StateUnknown:
			started, ready = old.Started != nil && *old.Started, old.Ready
		case probed:
			started, ready = h.Started, h.Started && h.Ready
		default:
			started, ready = true, true
		}
	}
	if k == initContainer && !sidecar(spec) {
		ready = status.State.Terminated != nil && status.State.Terminated.ExitCode == 0
	}
	status.Started, status.Ready = &started, ready
}

// The kubelet's limits of termination messages, in bytes: of one container, and of all containers of a pod together.
const (
	maxMessage    = 4 << 10
	maxPodMessage = 12 << 10
)

// limited is an end whose termination message fits into a status: text, and no more of it than is this container's share.
func (cs *containers) limited(end *corev1.ContainerStateTerminated) *corev1.ContainerStateTerminated {
	spec := &cs.in.Pod.Spec
	share := min(maxMessage, maxPodMessage/(len(spec.InitContainers)+len(spec.Containers)+len(spec.EphemeralContainers)))
	if end == nil || len(end.Message) <= share && utf8.ValidString(end.Message) {
		return end
	}
	cut := *end // what was told before is not this function's to change
	cut.Message = strings.ToValidUTF8(cut.Message, "\uFFFD")
	if len(cut.Message) > share {
		cut.Message = strings.ToValidUTF8(cut.Message[:share], "") // a character that was cut in two goes
	}
	return &cut
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
		status.LastTerminationState = corev1.ContainerState{Terminated: cs.terminated(previous, old)}
	} else if old.State.Terminated != nil && old.State.Terminated.ContainerID != status.ContainerID {
		// What was told as the end of the instance before this one, and has been collected since.
		status.LastTerminationState = old.State
	}
	switch c.State {
	case podmill.StateRunning:
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: seconds(c.StartedAt)}
	case podmill.StateExited:
		status.State.Terminated = cs.terminated(c, old)
	case podmill.StateCreated:
		status.State.Waiting = cs.creating()
	default:
		// The runtime cannot say. A container that was told to run is held to run until somebody knows better.
		status.State = old.State
		if status.State == (corev1.ContainerState{}) {
			status.State.Waiting = cs.creating()
		}
	}
	if status.State.Running != nil {
		status.Resources, status.AllocatedResources = resourcesOf(c, cs.in.Progress.Resize)
	}
}

// unobserved fills a status of a container that the runtime does not hold: it has not been created yet, or its dead instance was
// collected, or it vanished.
func (cs *containers) unobserved(status *corev1.ContainerStatus, spec *corev1.Container, old *corev1.ContainerStatus, k kind) {
	if old.ContainerID != "" && old.Image != "" {
		status.Image = old.Image // as the runtime called it
	}
	switch {
	case old.State.Terminated != nil:
		status.State = old.State
		return
	case old.State.Running != nil:
		status.LastTerminationState.Terminated = vanished(old, "The container could not be located when the pod was deleted.  The container used to be Running")
		again := k != ephemeralContainer && lifecycle.Restarts(cs.in.Pod, spec, kindOf(spec, k), lifecycle.ExitUnknown)
		if cs.in.Progress.Stopped || !again {
			status.State.Terminated = vanished(old, "The container could not be located when the pod was terminated")
			return
		}
	}
	status.State.Waiting = cs.creating()
}

// creating is why a container waits of which nothing else is known. In a pod with init containers the kubelet calls that initializing, of
// whichever container.
func (cs *containers) creating() *corev1.ContainerStateWaiting {
	if len(cs.in.Pod.Spec.InitContainers) > 0 {
		return &corev1.ContainerStateWaiting{Reason: reasonPodInitializing}
	}
	return &corev1.ContainerStateWaiting{Reason: reasonContainerCreating}
}

// wait shows why a container that does not run, and should, does not. Of one that is about to be started again, or was never started before its pod
// had to end, the reason that was told last stays, as in the kubelet.
func (cs *containers) wait(status *corev1.ContainerStatus, spec *corev1.Container, old *corev1.ContainerStatus, k kind) {
	waiting, ok := cs.in.Progress.Waiting[status.Name]
	end, ending := status.State.Terminated, cs.in.Progress.Stopped || cs.in.Progress.Termination != nil
	switch told := old.State.Waiting; {
	case ok:
	case told == nil || old.ContainerID != status.ContainerID:
		return
	case status.State.Waiting != nil && ending,
		end != nil && !ending && lifecycle.Restarts(cs.in.Pod, spec, kindOf(spec, k), end.ExitCode):
		waiting = *told
	default:
		return
	}
	if end != nil {
		status.LastTerminationState = corev1.ContainerState{Terminated: end}
	}
	status.State = corev1.ContainerState{Waiting: &waiting}
}

func kindOf(spec *corev1.Container, k kind) lifecycle.Kind {
	if k == initContainer {
		return lifecycle.InitKind(spec)
	}
	return lifecycle.App
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

// terminated says how an instance ended. Its termination message is told again when it cannot be read any more.
func (cs *containers) terminated(c *podmill.Container, old *corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	t := &corev1.ContainerStateTerminated{
		ExitCode:    c.ExitCode,
		Reason:      c.Reason,
		Message:     c.Message,
		StartedAt:   seconds(c.StartedAt),
		FinishedAt:  seconds(c.FinishedAt),
		ContainerID: cs.id(c.ID),
	}
	said, ok := cs.in.Progress.Messages[c.ID]
	switch {
	case !ok:
		for _, told := range []*corev1.ContainerStateTerminated{old.State.Terminated, old.LastTerminationState.Terminated} {
			if told != nil && told.ContainerID == t.ContainerID {
				t.Message = told.Message
			}
		}
	case said != "" && t.Message != "":
		t.Message += ": " + said
	case said != "":
		t.Message = said
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

package syncpod

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/lifecycle"
)

// Input is all that a plan is made of: what is wanted, what is there, and what is remembered.
type Input struct {
	// Pod is what is wanted, with the resources that it was allocated.
	Pod  *corev1.Pod
	Seen *podmill.RuntimePod
	// Sandbox is the one to use of those that were seen. Nil asks for a new one, of attempt SandboxAttempt, for the reason SandboxWhy.
	Sandbox        *podmill.Sandbox
	SandboxAttempt uint32
	SandboxWhy     string
	// Active is since when the pod counts as active, for its deadline.
	Active time.Time
	// Known is what is remembered of each container's newest instance, in case that the runtime has lost it.
	Known map[string]Record
	// Ended is, by container ID, when containers ended of which that was seen, as the monotonic clock has it: the runtime tells what the wall clock
	// said, and that may have been set since. Of any other the runtime's word counts.
	Ended map[string]time.Time
	// Logged is one more than the highest attempt of which the log directory has a file.
	Logged map[string]uint32
	// Backoff is how long each container last had to wait, by [BackoffKey].
	Backoff map[string]Backoff
	// MaxBackoff is the longest such wait; zero is the kubelet's five minutes.
	MaxBackoff time.Duration
	// Held are the containers that cannot start before some time, by [BackoffKey].
	Held map[string]Held
	// Adopted is, by container ID, the hash to compare with of running containers that carry none of ours: that of the spec with which
	// they were first met.
	Adopted map[string]string
	// Health is, by container ID, how the containers are that are probed; any other is started.
	Health map[string]podmill.Health
	// Unhealthy are the IDs of containers that were stopped because a probe or their postStart hook had failed. They have failed, whatever their exit
	// code says.
	Unhealthy map[string]bool
	// Hooks is, by container ID, how the hooks stand of which there is something to say.
	Hooks map[string]Hooks
	// Resizing says that the pod was allocated other resources than its containers were started with, and Actual is, by container ID, what those
	// have that run.
	Resizing bool
	Actual   map[string]corev1.ResourceRequirements
	// Termination is set when the pod has to end.
	Termination *podmill.Termination
	// Stopped are the IDs of containers that the runtime has stopped when it was told to. Where it cannot say what became of one, that is
	// as good as it gets, or a pod would never end.
	Stopped map[string]bool
}

// Held is until when a container cannot start, and what it waits for.
type Held struct {
	Until   time.Time
	Waiting corev1.ContainerStateWaiting
}

// Hooks is how the hooks of an instance of a container stand.
type Hooks struct {
	// PostStart is how the postStart hook stands that has not succeeded; empty where it has, or there is none.
	PostStart PostStart
	// PreStop says that the preStop hook need not be begun: it runs or is over.
	PreStop bool
}

// PostStart is how a postStart hook stands that was begun and has not succeeded. Until it has, its container has not started.
type PostStart string

// How a postStart hook can stand.
const (
	PostStartRuns   PostStart = "runs"
	PostStartFailed PostStart = "failed"
	// PostStartLost is the hook of an agent that was killed meanwhile: nobody will ever know how it ended.
	PostStartLost PostStart = "lost"
)

// Record is what is remembered of an instance of a container that has run.
type Record struct {
	Attempt   uint32
	SandboxID string // empty where it is not known
	// ExitCode is how it ended. Of one that was still running when it was last seen, and is there no more, nobody knows: [lifecycle.ExitUnknown].
	ExitCode int32
	// FinishedAt is when it ended, or the last moment in which it is known to have lived; zero where neither is.
	FinishedAt time.Time
	// Reset says that it was removed to be started again with all others: it starts in any case.
	Reset bool
}

// recordOf returns what to remember of an observed instance; nothing of one that has not run.
func recordOf(c *podmill.Container) (Record, bool) {
	r := Record{Attempt: c.Attempt, SandboxID: c.SandboxID, ExitCode: lifecycle.ExitUnknown, FinishedAt: c.StartedAt}
	if c.State == podmill.StateExited {
		r.ExitCode, r.FinishedAt = c.ExitCode, c.FinishedAt
	}
	return r, c.State != podmill.StateCreated
}

// endedAt returns when something ended of which a wall clock said finished, as the monotonic clock has it that counts from now on: not later than now.
func endedAt(finished, now time.Time) time.Time {
	if finished.IsZero() {
		return finished
	}
	return now.Add(-max(0, now.Sub(finished)))
}

// recall returns what a pod's last known status tells of its containers.
func recall(status *corev1.PodStatus) map[string]Record {
	known := map[string]Record{}
	for _, list := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses, status.EphemeralContainerStatuses} {
		for i := range list {
			if r, ok := recallOne(&list[i]); ok {
				known[list[i].Name] = r
			}
		}
	}
	return known
}

func recallOne(s *corev1.ContainerStatus) (r Record, ran bool) {
	r = Record{Attempt: uint32(max(0, s.RestartCount)), ExitCode: lifecycle.ExitUnknown} //nolint:gosec // not negative
	end := s.State.Terminated
	if end == nil && s.State.Running == nil {
		end = s.LastTerminationState.Terminated
	}
	if end != nil {
		r.ExitCode, r.FinishedAt = end.ExitCode, end.FinishedAt.Time
	}
	return r, end != nil || s.State.Running != nil || s.RestartCount > 0
}

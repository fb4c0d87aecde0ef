package podmilltest

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// What a test does to a runtime behind the agent's back. Containers are named by the pod's UID and their name, and it is the newest
// attempt that is meant; what is not there is left alone, and the answer is false.

// KillProcess ends a running container's process with an exit code.
func (r *Runtime) KillProcess(pod types.UID, name string, code int32) bool {
	return r.hand(pod, name, "process dies", func(c *container) {
		if c.seen.State == podmill.StateRunning {
			r.exited(c, code, "", "")
		}
	})
}

// OOM has the kernel end a running container for its memory.
func (r *Runtime) OOM(pod types.UID, name string) bool {
	return r.hand(pod, name, "runs out of memory", func(c *container) {
		if c.seen.State == podmill.StateRunning {
			r.exited(c, 137, "OOMKilled", "")
		}
	})
}

// LoseTrack makes the runtime unable to say what a container does.
func (r *Runtime) LoseTrack(pod types.UID, name string) bool {
	return r.hand(pod, name, "is unknown from now on", func(c *container) {
		c.halt()
		c.seen.State = podmill.StateUnknown
		r.changed(c.sandbox.pod)
	})
}

// RemoveBehindBack removes a container, running or not.
func (r *Runtime) RemoveBehindBack(pod types.UID, name string) bool {
	return r.hand(pod, name, "is removed behind the agent's back", r.removeContainer)
}

func (r *Runtime) hand(pod types.UID, name, what string, do func(*container)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pods[pod]
	if p == nil {
		return false
	}
	at := slices.IndexFunc(p.containers, func(c *container) bool { return c.seen.Name == name })
	if at < 0 {
		return false
	}
	r.log.Note("%s %s", p.containers[at], what)
	do(p.containers[at])
	return true
}

// KillSandbox kills what holds a pod's sandboxes together. They are not ready any more; the containers run on.
func (r *Runtime) KillSandbox(pod types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pods[pod]
	if p == nil {
		return false
	}
	r.log.Note("%s sandbox dies", podName(p.PodRef))
	for _, s := range p.sandboxes {
		r.loseSandbox(s)
	}
	return true
}

// RemovePodBehindBack removes all that the runtime holds of a pod.
func (r *Runtime) RemovePodBehindBack(pod types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pods[pod]
	if p == nil {
		return false
	}
	r.log.Note("%s is removed behind the agent's back", podName(p.PodRef))
	for _, s := range slices.Clone(p.sandboxes) {
		r.removeSandbox(s)
	}
	return true
}

// Reboot is a restart of the machine: sandboxes are not ready, and containers that ran have exited with the code 255 that
// containerd gives them, for nobody knows the true one. Event streams break.
func (r *Runtime) Reboot() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log.Note("the machine reboots")
	for _, p := range r.order {
		for _, c := range p.containers {
			if c.seen.State == podmill.StateRunning {
				r.exited(c, lostCode, lostReason, "")
			}
		}
		for _, s := range p.sandboxes {
			r.loseSandbox(s)
		}
	}
	r.breakStreams(errors.New("the runtime has gone away"))
}

// BreakStreams ends every event stream with err, as a restart of the runtime does.
func (r *Runtime) BreakStreams(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.breakStreams(err)
}

func (r *Runtime) breakStreams(err error) {
	for w := range r.watchers {
		w.stop = err
		w.signal()
	}
}

// SetStatus says what [Runtime.RuntimeStatus] answers. A runtime that is not ready runs no sandbox, and one whose network is not ready
// none that needs it.
func (r *Runtime) SetStatus(status podmill.RuntimeStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

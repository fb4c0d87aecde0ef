package pleg

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// maxHeard bounds what is kept of the events that come during one inspection.
const maxHeard = 64

// Hint says that something of a pod may have changed. What is known of it is not good enough any more for whoever observes it, and notify is
// called. If that makes nobody observe the pod for ten seconds, it is inspected all the same: so a pod that somebody is at work on is not
// looked at after each of his steps, but when he wants to know.
func (p *PLEG) Hint(pod types.UID) { p.event(podmill.RuntimeEvent{Pod: pod}) }

// event takes an event of the runtime as a hint. One that says what is known already, as many do that follow what the agent itself has just done,
// is none. One that comes during an inspection may turn out to be none when that has ended.
func (p *PLEG) event(event podmill.RuntimeEvent) {
	p.mu.Lock()
	e := p.entry(event.Pod)
	precise := event.ID != "" && event.State != podmill.StateUnknown
	if precise && e.now == nil && e.failed == 0 && !e.stale && shows(e.seen, event.ID, event.State) {
		p.mu.Unlock()
		return
	}
	e.hear(event, precise)
	if e.next == nil && e.later == nil {
		e.later = time.AfterFunc(linger, func() { p.again(event.Pod) })
	}
	p.mu.Unlock()
	p.notify(event.Pod)
}

// hear notes that something was heard of the pod and, for as long as only precise events came during an inspection, what. Callers hold mu.
func (e *entry) hear(event podmill.RuntimeEvent, precise bool) {
	only := !e.stale || e.heard != nil
	e.stale = true
	if !precise || !only || e.now == nil || len(e.heard) == maxHeard {
		e.heard = nil
		return
	}
	if e.heard == nil {
		e.heard = map[string]podmill.State{}
	}
	e.heard[event.ID] = max(e.heard[event.ID], event.State)
}

// again has a pod inspected that nobody has asked for.
func (p *PLEG) again(pod types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ask(pod, false)
}

// confirm finds that an inspection has seen all that was heard while it went on: then its answer is as good as if nothing had been. Callers hold mu.
func (e *entry) confirm(pod *podmill.RuntimePod) {
	if e.heard == nil {
		return
	}
	for id, state := range e.heard {
		if !shows(pod, id, state) {
			return
		}
	}
	e.stale = false
	if e.next == nil {
		e.stopLater()
	}
}

// shows reports that a sandbox or container has come at least as far as state.
func shows(pod *podmill.RuntimePod, id string, state podmill.State) bool {
	if pod == nil {
		return false
	}
	for i := range pod.Sandboxes {
		if s := &pod.Sandboxes[i]; s.ID == id {
			return stateOf(s) >= state
		}
	}
	for i := range pod.Containers {
		if c := &pod.Containers[i]; c.ID == id {
			return c.State >= state
		}
	}
	return false
}

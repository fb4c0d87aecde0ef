package syncpod

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/lifecycle"
)

// memory is what a syncer knows of a pod beside spec and observation. Nothing in it has to survive a restart of the agent: what does
// is in the runtime, the pod's last status, or its directory. It belongs to whoever syncs the pod.
type memory struct {
	// dirty says that the pod may have changed since it was last looked at, by what the syncer did itself.
	dirty bool
	// active is since when the pod counts as active.
	active  time.Time
	known   map[string]Record
	ended   map[string]time.Time // by container ID
	logged  map[string]uint32
	backoff map[string]Backoff
	adopted map[string]string
	// held are the containers of which it is known when they can be tried again.
	held map[string]Held
	// unhealthy are the IDs of containers that were stopped because they had failed.
	unhealthy map[string]bool
	keeper    *keeper
	// end is how the pod was ending already, for a reason, when the agent was restarted.
	end *podmill.Kill
	// unhooked are the IDs of containers whose postStart hook failed.
	unhooked map[string]bool
	// failed is why the last try to start a container came to nothing.
	failed map[string]corev1.ContainerStateWaiting
	// homeless says that the last try to give the pod a sandbox came to nothing.
	homeless bool
	// told is, by container, the attempt after which it was last said that it waits.
	told map[string]uint32
	// refused is why nothing of the pod is started, as people have been told.
	refused string
	alarm   *time.Timer
	// renew is when the first of the pod's volumes wants to be brought up to date; zero if none does.
	renew time.Time
	sizing
}

// remember returns what is known of a pod, made from its last status and its logs where it is met for the first time.
func (s *Syncer) remember(pod *corev1.Pod) (*memory, error) {
	s.mu.Lock()
	m := s.pods[pod.UID]
	s.mu.Unlock()
	if m != nil {
		return m, nil
	}
	keeper, err := s.keeper(pod.UID)
	if err != nil {
		return nil, err
	}
	logged, err := s.loggedAttempts(pod)
	if err != nil {
		return nil, err
	}
	known := recall(&pod.Status)
	for _, name := range keeper.Reset {
		r := known[name]
		r.Reset = true
		known[name] = r
	}
	m = &memory{
		// That a pod which has run was not heard of so far is not enough to believe that it is gone: one that is never restarted would have failed
		// for good. So it is looked at first.
		dirty:     len(known) > 0,
		active:    activeSince(&pod.Status, time.Now()),
		known:     known,
		ended:     map[string]time.Time{},
		logged:    logged,
		backoff:   map[string]Backoff{},
		adopted:   map[string]string{},
		held:      map[string]Held{},
		unhealthy: map[string]bool{},
		keeper:    keeper,
		end:       keeper.doomed(),
		unhooked:  map[string]bool{},
		failed:    map[string]corev1.ContainerStateWaiting{},
		told:      map[string]uint32{},
	}
	s.mu.Lock()
	s.pods[pod.UID] = m
	s.mu.Unlock()
	return m, nil
}

// forget drops what is known of a pod.
func (s *Syncer) forget(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.pods[uid]; m != nil {
		m.silence()
	}
	delete(s.pods, uid)
	delete(s.keepers, uid)
}

// learn takes over what an observation shows.
func (m *memory) learn(pod *corev1.Pod, seen *podmill.RuntimePod, now time.Time) {
	m.learnEnds(seen, now)
	for c := range lifecycle.Containers(pod) {
		newest := seen.Container(c.Name)
		if newest == nil {
			continue
		}
		known, ok := m.known[c.Name]
		if r, ran := recordOf(newest); ran && known != r && (!ok || r.Attempt >= known.Attempt) {
			m.known[c.Name] = r
		}
		if newest.State != podmill.StateRunning {
			continue
		}
		if !m.unhooked[newest.ID] {
			delete(m.failed, c.Name) // whatever was said when it was started
		}
		if !ourHash(newest.Annotations[podmill.AnnotationContainerHash]) && m.adopted[newest.ID] == "" {
			m.adopted[newest.ID] = hashOf(c)
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		name := pod.Spec.EphemeralContainers[i].Name
		if newest := seen.Container(name); newest != nil && newest.State != podmill.StateCreated {
			m.known[name], _ = recordOf(newest)
			delete(m.failed, name)
		}
	}
}

// learnEnds takes over which containers have ended, and when, and forgets those that are gone.
func (m *memory) learnEnds(seen *podmill.RuntimePod, now time.Time) {
	maps.DeleteFunc(m.ended, func(id string, _ time.Time) bool {
		return !anyOf(seen.Containers, func(c *podmill.Container) bool { return c.ID == id })
	})
	for i := range seen.Containers {
		c := &seen.Containers[i]
		if _, ok := m.ended[c.ID]; !ok && c.State == podmill.StateExited {
			m.ended[c.ID] = endedAt(c.FinishedAt, now)
			if c.FinishedAt.IsZero() { // which contradicts that it has exited
				m.ended[c.ID] = now
			}
		}
	}
}

// condemned takes over which containers are stopped because they have failed, and forgets those of them that are gone.
func (m *memory) condemned(kills []Kill, seen *podmill.RuntimePod) {
	maps.DeleteFunc(m.unhealthy, func(id string, _ bool) bool {
		return !anyOf(seen.Containers, func(c *podmill.Container) bool { return c.ID == id })
	})
	for i := range kills {
		if k := &kills[i]; k.Failed {
			m.unhealthy[k.ID] = true
		}
	}
}

// reset takes over that all containers start again.
func (m *memory) reset(pod *corev1.Pod) {
	for c := range lifecycle.Containers(pod) {
		if r, ok := m.known[c.Name]; ok {
			r.Reset = true
			m.known[c.Name] = r
		}
	}
}

// keepResets keeps which containers have still to start with all others.
func (m *memory) keepResets() error {
	var names []string
	for name, r := range m.known {
		if r.Reset {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return m.keeper.resets(names)
}

// started takes over that a container was started, in case that it is gone before anyone looks.
func (m *memory) started(start *Start, sandboxID string) {
	m.known[start.Container.Name] = Record{
		Attempt: start.Attempt, SandboxID: sandboxID, ExitCode: lifecycle.ExitUnknown, FinishedAt: time.Now(),
	}
}

// waiting returns why containers wait: what the plan knows, what went wrong with those that it wants to start, and that a container which
// runs without the success of its postStart hook is told as one that does not run yet; and so is one that starts again because it was stopped for a failure:
// by its exit code alone it may be done for good.
func (m *memory) waiting(
	pod *corev1.Pod, seen *podmill.RuntimePod, a *Actions, hooked map[string]Hooks,
) map[string]corev1.ContainerStateWaiting {
	if len(m.failed)+len(hooked)+len(m.unhealthy) == 0 {
		return a.Waiting
	}
	starting := corev1.ContainerStateWaiting{Reason: reasonCreating}
	if len(pod.Spec.InitContainers) > 0 {
		starting.Reason = reasonInitializing
	}
	all := map[string]corev1.ContainerStateWaiting{}
	maps.Copy(all, a.Waiting)
	for i := range a.Start {
		c := a.Start[i].Container
		newest := seen.Container(c.Name)
		if w, ok := m.failed[c.Name]; ok {
			all[c.Name] = w
		} else if newest != nil && m.unhealthy[newest.ID] && !lifecycle.Restarts(pod, c, a.Start[i].Kind, newest.ExitCode) {
			all[c.Name] = starting
		}
	}
	for c := range lifecycle.Containers(pod) {
		newest := seen.Container(c.Name)
		if newest == nil || newest.State != podmill.StateRunning || hooked[newest.ID].PostStart == "" {
			continue
		}
		if failed, ok := m.failed[c.Name]; ok {
			all[c.Name] = failed
		} else {
			all[c.Name] = starting
		}
	}
	return all
}

// hooks returns how the hooks stand, and takes over which have failed.
func (m *memory) hooks(b *beside) map[string]Hooks {
	states := b.states(func(f hookFailure) {
		m.unhooked[f.id] = true
		m.failed[f.container] = corev1.ContainerStateWaiting{Reason: reasonPostStart, Message: f.message}
	})
	maps.DeleteFunc(m.unhooked, func(id string, _ bool) bool { return states[id].PostStart == "" })
	for id := range m.unhooked {
		s := states[id]
		s.PostStart = PostStartFailed
		states[id] = s
	}
	return states
}

// mounted takes over when volumes that were made ready want to be brought up to date.
func (m *memory) mounted(volumes map[string]podmill.Volume) {
	m.renew = time.Time{}
	for _, v := range volumes {
		m.renew = earlier(m.renew, v.Renew)
	}
}

// isStale reports whether a volume should have been brought up to date by now. The sync that is under way does so, or the next.
func (m *memory) isStale(now time.Time) bool { return !m.renew.IsZero() && !now.Before(m.renew) }

// earlier returns the earlier of two times; zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// silence puts off the alarm.
func (m *memory) silence() {
	if m.alarm != nil {
		m.alarm.Stop()
		m.alarm = nil
	}
}

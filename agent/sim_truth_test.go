package agent_test

import (
	"context"
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/lifecycle"
)

// simPod is a pod that a source wants, or wanted.
type simPod struct {
	pod     *corev1.Pod // as it is now
	source  int
	wanted  bool     // the source has it
	lives   []*life  // a UID that was taken away and comes back lives again
	knows   *process // the agent that was told of the pod
	noticed *process // the agent that was told that it is not wanted any more
	// unsure says that an agent which came later cannot know where the pod was in its life.
	unsure   bool
	edited   time.Time // last
	touched  time.Time // last by something that makes the agent start its containers anew
	strayed  time.Time // a call last took effect that nobody waited for
	wants    int       // how often its source has come to want it
	restated int       // how often its status has begun anew
}

// life is a pod from when it is wanted until it is not.
type life struct {
	since time.Time
	until time.Time // it is to end from then on; zero while it is wanted
	grace time.Duration
	// deadline is the earliest time at which what it was given to end in is over.
	deadline time.Time
	// limit is when its time is over, counted from when the agent first told a container to stop; zero before that.
	limit time.Time
}

// instance is a container, as it truly was.
type instance struct {
	id, sandbox string
	pod         types.UID
	name, image string
	attempt     uint32
	life        *life
	state       podmill.State
	ran         bool
	startedAt   time.Time
	gone        bool
	past        bool // it was removed to be started again with all others
	code        int32
	passed      map[string]time.Time // when a probe or hook last succeeded, by what it is
	unhealthy   bool                 // its liveness or startup probe has failed
}

func (sp *simPod) life() *life    { return sp.lives[len(sp.lives)-1] }
func (sp *simPod) ref() string    { return sp.pod.Name + "(" + string(sp.pod.UID) + ")" }
func (sp *simPod) desired() bool  { return sp.wanted && sp.pod.DeletionTimestamp == nil }
func (i *instance) running() bool { return !i.gone && i.state == podmill.StateRunning }

// end says that a life is to end within a grace period. Of several the strictest counts.
func (l *life) end(grace time.Duration) {
	now := time.Now()
	if l.until.IsZero() {
		l.until, l.grace, l.deadline = now, grace, now.Add(grace)
		return
	}
	next := now.Add(grace)
	if next.Before(l.deadline) {
		l.deadline = next
	}
	if next.Before(l.limit) {
		l.limit = next
	}
	l.grace = min(l.grace, grace)
}

// look takes over what the runtime truly holds.
func (s *sim) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := map[string]bool{}
	ready := map[types.UID]int{}
	for uid, seen := range s.held() {
		for _, b := range seen.Sandboxes {
			if b.Ready {
				ready[uid]++
			}
		}
		for _, c := range seen.Containers {
			held[c.ID] = true
			i := s.instances[c.ID]
			if i == nil {
				continue // being made
			}
			i.state, i.startedAt = c.State, c.StartedAt
			i.ran = i.ran || c.State == podmill.StateRunning || !c.StartedAt.IsZero()
			if c.State == podmill.StateExited {
				i.code = c.ExitCode
			}
		}
	}
	runs := map[string]*instance{}
	for id, i := range s.instances {
		i.gone = !held[id]
		if !i.running() || !s.honest || s.loose(s.pods[i.pod]) {
			continue
		}
		key := string(i.pod) + " " + i.name
		if other := runs[key]; other != nil {
			s.breach(1, "%s#%d and #%d of %s run side by side", i.name, i.attempt, other.attempt, i.pod)
		}
		runs[key] = i
	}
	for uid, n := range ready {
		if n > 1 && s.honest && !s.loose(s.pods[uid]) {
			s.breach(1, "%d sandboxes of %s are ready", n, uid)
		}
	}
}

// held returns what the runtime truly holds.
func (s *sim) held() map[types.UID]*podmill.RuntimePod {
	var snap podmill.Snapshot
	if err := s.rt.ListPods(context.Background(), &snap); err != nil {
		s.Fatal(err)
	}
	held := map[types.UID]*podmill.RuntimePod{}
	for _, item := range snap.Items {
		if held[item.Pod.UID] == nil {
			held[item.Pod.UID] = s.heldOf(item.Pod.UID)
		}
	}
	return held
}

func (s *sim) heldOf(uid types.UID) *podmill.RuntimePod {
	seen, err := s.rt.InspectPod(context.Background(), uid)
	if err != nil {
		s.Fatal(err)
	}
	return seen
}

func (s *sim) podOfSandbox(id string) types.UID {
	for uid, seen := range s.held() {
		for _, b := range seen.Sandboxes {
			if b.ID == id {
				return uid
			}
		}
	}
	return ""
}

// instanceFor is what a container will be that is about to be created.
func (s *sim) instanceFor(spec *podmill.ContainerSpec) *instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := &instance{
		sandbox: spec.SandboxID, pod: spec.Sandbox.Pod.UID, name: spec.Container.Name, image: spec.Container.Image, attempt: spec.Attempt,
	}
	if sp := s.pods[i.pod]; sp != nil {
		i.life = sp.life()
	}
	return i
}

func (s *sim) made(id string, i *instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i.id, i.state = id, podmill.StateCreated
	s.instances[id] = i
}

func (s *sim) startedNow(i *instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i.ran = true
	if i.state == podmill.StateCreated {
		i.state, i.startedAt = podmill.StateRunning, time.Now()
	}
}

// instance returns what a container is, by its ID.
func (s *sim) instance(id string) *instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.instances[id]; i != nil {
		return i
	}
	return &instance{id: id, gone: true}
}

func (s *sim) strayAt(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sp := s.pods[uid]; sp != nil {
		sp.strayed = time.Now()
	}
}

// loose says that a pod was hit by a call that nobody waited for, so that for a while it cannot be as it should. Callers hold mu.
func (s *sim) loose(sp *simPod) bool {
	return sp == nil || !sp.strayed.IsZero() && time.Since(sp.strayed) < 4*time.Minute
}

// adopt says that an agent which does not know better takes every container of a pod for one of its present life. Callers hold mu.
func (s *sim) adopt(sp *simPod) {
	s.each(sp.pod.UID, func(i *instance) {
		if !i.gone && i.life != sp.life() {
			i.life, sp.unsure = sp.life(), true
		}
	})
}

// each calls f for every instance of a pod. Callers hold mu.
func (s *sim) each(uid types.UID, f func(*instance)) {
	for _, i := range s.instances {
		if i.pod == uid {
			f(i)
		}
	}
}

// newest returns the newest instance of a container in one of the pod's lives that ever ran, nil if there is none. Callers hold mu.
func (s *sim) newest(sp *simPod, in *life, name string) (newest *instance) {
	s.each(sp.pod.UID, func(i *instance) {
		if i.name == name && i.ran && i.life == in && !i.past && (newest == nil || i.attempt > newest.attempt) {
			newest = i
		}
	})
	return newest
}

// over reports that a pod's work in one of its lives is done by itself, whatever its source wants. Callers hold mu.
func (s *sim) over(sp *simPod, in *life) bool {
	if s.restartsAll(sp, in) {
		return false
	}
	done := true
	for c, kind := range lifecycle.Containers(sp.pod) {
		i := s.newest(sp, in, c.Name)
		ended := i != nil && !i.running() && i.state != podmill.StateUnknown
		again := !ended || lifecycle.Restarts(sp.pod, c, kind, i.exitCode())
		switch {
		case kind == lifecycle.Init && ended && !again && i.exitCode() != 0:
			return true
		case kind == lifecycle.App && again:
			done = false
		}
	}
	return done
}

// asks reports that a container has ended in such a way that all of its pod restart. Callers hold mu.
func (s *sim) asks(sp *simPod, in *life, c *corev1.Container) bool {
	i := s.newest(sp, in, c.Name)
	return i != nil && !i.running() && i.state != podmill.StateUnknown && lifecycle.RestartsAll(c, i.exitCode())
}

// restartsAll reports that all containers of a pod are to restart. Callers hold mu.
func (s *sim) restartsAll(sp *simPod, in *life) bool {
	for c := range lifecycle.Containers(sp.pod) {
		if s.asks(sp, in, c) {
			return true
		}
	}
	return false
}

// restarted notes that the reason for a restart of all was removed: what was before is past.
func (s *sim) restarted(reason *instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sp := s.pods[reason.pod]
	if sp == nil || !reason.life.until.IsZero() {
		return
	}
	if spec := s.spec(sp, reason.name); spec == nil || s.newest(sp, reason.life, reason.name) != reason || !s.asks(sp, reason.life, spec) {
		return
	}
	s.each(reason.pod, func(i *instance) { i.past = i.past || i == reason || i.gone })
}

// exitCode is what is known of an end.
func (i *instance) exitCode() int32 {
	if i.state == podmill.StateExited {
		return i.code
	}
	return lifecycle.ExitUnknown
}

func hash(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

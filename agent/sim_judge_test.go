package agent_test

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/lifecycle"
)

// What must hold of each call that an agent makes, by the numbers of the invariants. Callers hold mu.

// judgeAny judges what holds of every call: what a source could own that has not been heard is left alone.
func (s *sim) judgeAny(p *process, uid types.UID, what string) *simPod {
	sp := s.pods[uid]
	if sp == nil || p.heard[sp.source].IsZero() {
		s.breach(11, "%s of %s, whose source has not been heard", what, uid)
	}
	return sp
}

// judgeNew judges that something new comes to be of a pod.
func (s *sim) judgeNew(p *process, uid types.UID, what string) *simPod {
	sp := s.judgeAny(p, uid, what)
	if sp == nil {
		return nil
	}
	if !sp.desired() && time.Since(sp.life().until) > 0 {
		s.breach(2, "%s of %s, which nobody wants", what, sp.ref())
	}
	if h := s.histories[uid]; h.final(sp) {
		s.breach(5, "%s of %s, which is %s", what, sp.ref(), h.last.Phase)
	}
	if !s.honest || s.loose(sp) {
		return sp
	}
	for _, i := range s.instances {
		if !i.running() {
			continue
		}
		if i.pod == uid && i.life != sp.life() {
			s.breach(10, "%s of %s, while %s#%d of its former life runs", what, sp.ref(), i.name, i.attempt)
		}
		if o := s.pods[i.pod]; i.pod != uid && o.pod.Name == sp.pod.Name && !s.isAPI(sp.source) && !s.isAPI(o.source) && o.knows == p && !s.loose(o) {
			s.breach(10, "%s of %s, while %s#%d of %s runs, which has its name", what, sp.ref(), i.name, i.attempt, o.ref())
		}
	}
	return sp
}

// judgeRun judges that a sandbox is run. It returns what is to be said if that succeeds: an agent to which a listing has lied may try to, and
// the runtime refuses.
func (s *sim) judgeRun(p *process, uid types.UID) (wrong string) {
	sp := s.judgeNew(p, uid, "RunSandbox")
	if sp == nil || !s.honest || s.loose(sp) {
		return ""
	}
	for _, b := range s.heldOf(uid).Sandboxes {
		if b.Ready {
			wrong = fmt.Sprintf("RunSandbox of %s beside sandbox %d, which is ready", sp.ref(), b.Attempt)
		}
	}
	s.each(uid, func(i *instance) {
		if i.running() {
			wrong = fmt.Sprintf("RunSandbox of %s, while %s#%d runs", sp.ref(), i.name, i.attempt)
		}
	})
	return wrong
}

// judgeCreate judges that a container is created.
func (s *sim) judgeCreate(p *process, i *instance) *simPod {
	sp := s.judgeNew(p, i.pod, "CreateContainer "+i.name)
	if sp == nil || !s.honest {
		return sp
	}
	mounted := s.mounted(i.pod)
	for _, v := range sp.pod.Spec.Volumes {
		if !slices.Contains(mounted, v.Name) {
			s.breach(2, "CreateContainer %s of %s, whose volume %s is not ready", i.name, sp.ref(), v.Name)
		}
	}
	return sp
}

// judgeStart judges that a container is started.
func (s *sim) judgeStart(p *process, i *instance) {
	sp := s.judgeNew(p, i.pod, "StartContainer "+i.name)
	if sp == nil || !s.honest || s.loose(sp) {
		return
	}
	s.each(i.pod, func(o *instance) {
		if o != i && o.name == i.name && o.running() {
			s.breach(1, "StartContainer %s#%d of %s, while #%d runs", i.name, i.attempt, sp.ref(), o.attempt)
		}
	})
	s.judgeOrder(sp, i)
}

// judgeOrder judges that a container has its turn.
func (s *sim) judgeOrder(sp *simPod, i *instance) {
	had := func(name string, is func(*instance) bool) (yes bool) {
		s.each(sp.pod.UID, func(o *instance) { yes = yes || o.name == name && o.sandbox == i.sandbox && o.ran && !o.past && is(o) })
		return yes
	}
	anyone := func(*instance) bool { return true }
	if had(i.name, anyone) || slices.ContainsFunc(sp.pod.Spec.Containers, func(c corev1.Container) bool { return had(c.Name, anyone) }) {
		return
	}
	for c, kind := range lifecycle.Containers(sp.pod) {
		if c.Name == i.name {
			return
		}
		if kind == lifecycle.Init && !had(c.Name, func(o *instance) bool { return o.state == podmill.StateExited && o.code == 0 }) {
			s.breach(3, "StartContainer %s of %s before %s has succeeded", i.name, sp.ref(), c.Name)
		}
		if kind == lifecycle.Sidecar && !had(c.Name, func(o *instance) bool { return startedProbe(c, o) }) {
			s.breach(3, "StartContainer %s of %s before %s has started", i.name, sp.ref(), c.Name)
		}
	}
}

// judgeTakeAway judges that something is stopped or removed which must not hold anything that runs.
func (s *sim) judgeTakeAway(p *process, uid types.UID, what string, which func(*instance) bool) {
	if uid == "" {
		return // it is not there
	}
	sp := s.judgeAny(p, uid, what)
	if sp == nil || !s.honest || s.loose(sp) {
		return
	}
	s.each(uid, func(i *instance) {
		if which(i) && i.running() {
			s.breach(7, "%s of %s kills %s#%d", what, sp.ref(), i.name, i.attempt)
		}
	})
}

// judgeReason judges that the reason for a restart of all containers is removed: it is the last to go.
func (s *sim) judgeReason(i *instance) {
	sp := s.pods[i.pod]
	if sp == nil || !s.honest || s.loose(sp) || !i.life.until.IsZero() || s.newest(sp, i.life, i.name) != i {
		return
	}
	if spec := s.spec(sp, i.name); spec == nil || !s.asks(sp, i.life, spec) {
		return
	}
	s.each(i.pod, func(o *instance) {
		if spec := s.spec(sp, o.name); !o.gone && o.ran && o.life == i.life && spec != nil && !s.asks(sp, i.life, spec) {
			s.breach(3, "RemoveContainer of %s#%d of %s, for which all restart, before %s#%d", i.name, i.attempt, sp.ref(), o.name, o.attempt)
		}
	})
}

// floor is the least that a container gets to stop in, unless it is told to stop at once.
const floor = 2 * time.Second

// judgeStop judges that a container is stopped.
func (s *sim) judgeStop(p *process, i *instance, grace time.Duration) {
	if i.gone {
		return
	}
	sp := s.judgeAny(p, i.pod, "StopContainer "+i.name)
	if sp == nil || !s.honest || s.loose(sp) || !i.running() {
		return
	}
	l := i.life
	if l.until.IsZero() {
		if !s.reason(sp, i) {
			s.breach(4, "StopContainer %s#%d of %s, which is wanted and as it should be", i.name, i.attempt, sp.ref())
		}
		return
	}
	if s.over(sp, l) || s.restartsAll(sp, l) || sp.pod.Spec.ActiveDeadlineSeconds != nil || i.unhealthy {
		return // it began to end earlier, by itself
	}
	asked := p.asked[i.id]
	if l.limit.IsZero() {
		l.limit = asked.Add(l.grace)
	}
	if most := max(floor, l.limit.Sub(asked)); grace > most {
		s.breach(7, "StopContainer %s#%d of %s with a grace of %v, of which %v is left", i.name, i.attempt, sp.ref(), grace, most)
	}
	if early := l.deadline.Sub(time.Now().Add(grace)); early > 0 && !l.until.Equal(p.heard[sp.source]) {
		s.breach(7, "StopContainer %s#%d of %s kills %v early", i.name, i.attempt, sp.ref(), early)
	}
	s.judgeSidecar(p, sp, i)
}

// judgeSidecar judges that a sidecar goes when those have gone that it is there for. An agent that does not know the pod cannot know that.
func (s *sim) judgeSidecar(p *process, sp *simPod, i *instance) {
	at := slices.IndexFunc(sp.pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == i.name })
	if at < 0 || lifecycle.InitKind(&sp.pod.Spec.InitContainers[at]) != lifecycle.Sidecar || sp.knows != p || !time.Now().Before(i.life.deadline) {
		return
	}
	s.each(i.pod, func(o *instance) {
		later := slices.IndexFunc(sp.pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == o.name })
		if o.running() && (later < 0 || later > at) {
			s.breach(3, "StopContainer %s of %s before %s has stopped", i.name, sp.ref(), o.name)
		}
	})
}

// reason reports that there is one to stop a container of a pod that is wanted.
func (s *sim) reason(sp *simPod, i *instance) bool {
	spec := s.spec(sp, i.name)
	newest := s.newest(sp, sp.life(), i.name)
	seen := s.heldOf(i.pod)
	ready := 0
	for _, b := range seen.Sandboxes {
		if b.Ready {
			ready++
		}
	}
	own := slices.ContainsFunc(seen.Sandboxes, func(b podmill.Sandbox) bool { return b.Ready && b.ID == i.sandbox })
	return spec == nil || i.unhealthy || s.unhooked(spec, i) || sp.pod.Spec.ActiveDeadlineSeconds != nil || spec.Image != i.image || newest != i || !own || ready != 1 ||
		!sp.edited.Before(i.startedAt) || !sp.touched.Before(i.startedAt) || s.over(sp, sp.life()) || s.restartsAll(sp, sp.life()) || sp.unsure || s.histories[i.pod].final(sp)
}

func (s *sim) spec(sp *simPod, name string) *corev1.Container {
	for c := range lifecycle.Containers(sp.pod) {
		if c.Name == name {
			return c
		}
	}
	return nil
}

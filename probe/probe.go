package probe

import (
	"container/list"
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/httpget"
)

// Manager probes containers. Its methods may be called concurrently; those that are called for one pod come one after another.
type Manager struct {
	notify   func(types.UID)
	opts     options
	handlers handlers
	since    time.Time // what ran before is known from the pod's status alone

	wake chan struct{} // holds one token when the scheduler has to look before its time

	mu      sync.Mutex
	run     bool
	pods    map[types.UID]*pod
	queue   queue
	ready   []*task   // whose turn has come, in order
	pool    list.List // of *flight that take up a place, the oldest first
	flying  int       // flights that are not given up
	sleeps  time.Time // when the scheduler looks again by itself
	closing bool
}

// pod is what is kept of a pod that has probes.
type pod struct {
	spec      *corev1.Pod // as last seen
	looked    time.Time
	ending    bool
	instances map[string]*instance // that run, by the container's name
}

// instance is a container that runs.
type instance struct {
	pod     *pod
	name    string
	id      string
	began   time.Time // on the monotonic clock
	verdict verdict
	tasks   [kinds]*task
	gone    bool
}

// New returns a manager that probes once it runs. exec runs the commands of exec probes; it may be nil where there are none. notify is called,
// with a pod's UID, when the health of one of its containers has changed; it returns at once.
func New(exec Exec, notify func(types.UID), opts ...Option) *Manager {
	o := newOptions(opts)
	return &Manager{
		notify:   notify,
		opts:     o,
		handlers: handlers{exec: exec, http: httpget.NewClient(), grpc: o.grpc},
		since:    time.Now(),
		wake:     make(chan struct{}, 1),
		pods:     map[types.UID]*pod{},
	}
}

// Probe takes a look at a pod and returns, at once, how its running containers are, by their ID; containers without probes are left out. What
// runs and is new is probed from now on, with the probes that the pod has now, and what runs no more is not. ending says that the pod is
// terminating: then only readiness is probed, until the container has stopped.
//
// pod.Status is what was last reported of the pod. When a pod is seen for the first time, its containers that began before this manager
// was made are believed to be as started and as ready as that says of their very ID.
func (m *Manager) Probe(p *corev1.Pod, seen *podmill.RuntimePod, ending bool) map[string]podmill.Health {
	if !probed(p) {
		return nil
	}
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.pods[p.UID]
	ago := time.Duration(-1)
	if known == nil {
		known = &pod{instances: map[string]*instance{}}
		m.pods[p.UID] = known
	} else {
		ago = now.Sub(known.looked)
	}
	known.spec, known.looked, known.ending = p, now, ending

	healths := map[string]podmill.Health{}
	for c := range restarting(p) {
		in := m.see(known, c, seen, now, ago)
		if in != nil {
			healths[in.id] = in.verdict.health()
		}
	}
	m.rouse()
	return healths
}

// see brings what is kept of a container up to date with what was seen of it, and returns it if it runs. A container of which the runtime
// cannot tell the state goes on as it was. Callers hold mu.
func (m *Manager) see(p *pod, c *corev1.Container, seen *podmill.RuntimePod, now time.Time, ago time.Duration) *instance {
	in := p.instances[c.Name]
	var held *podmill.Container // by the runtime
	if seen != nil {
		held = seen.Container(c.Name)
	}
	same := in != nil && held != nil && held.ID == in.id
	running := held != nil && (held.State == podmill.StateRunning || same && held.State == podmill.StateUnknown)
	if in != nil && !(same && running) {
		m.end(in)
		delete(p.instances, c.Name)
		in = nil
	}
	if !running {
		return nil
	}
	if in == nil {
		in = m.begin(p, c, held, now, ago)
		p.instances[c.Name] = in
	}
	in.verdict.ending = p.ending
	address := addressOf(p.spec, held, seen, m.opts.hostIP)
	for _, t := range in.tasks {
		if t != nil {
			t.target.address = address
			m.settle(t, now)
		}
	}
	return in
}

// begin takes up a container that runs. Callers hold mu.
func (m *Manager) begin(p *pod, c *corev1.Container, seen *podmill.Container, now time.Time, ago time.Duration) *instance {
	in := &instance{pod: p, name: c.Name, id: seen.ID, began: now.Add(-ageOf(seen.StartedAt, now, ago))}
	before := ago < 0 && seen.StartedAt.Before(m.since)
	var prior *corev1.ContainerStatus
	if before {
		prior = reported(&p.spec.Status, seen.ID)
	}
	in.verdict = newVerdict(c, prior)
	in.verdict.ending = p.ending
	for k, spec := range specs(c) {
		if spec == nil {
			continue
		}
		t := &task{of: in, kind: kind(k), timing: timingOf(spec), index: -1}
		t.target = target{container: c, id: seen.ID, probe: spec, timeout: t.timing.timeout}
		in.tasks[k] = t
		m.settle(t, now)
		if t.index >= 0 && before && !(t.kind == readiness && in.verdict.ready) {
			t.turn = t.turn.Add(t.timing.spread())
			m.queue.set(t, t.turn)
		}
	}
	return in
}

// end forgets a container. What is under way for it has no meaning any more. Callers hold mu.
func (m *Manager) end(in *instance) {
	in.gone = true
	for _, t := range in.tasks {
		if t != nil {
			m.rest(t)
		}
	}
}

// settle has a task's next turn come if it is wanted, and not if it is not. Callers hold mu.
func (m *Manager) settle(t *task, now time.Time) {
	switch {
	case t.of.gone || !t.of.verdict.wants(t.kind):
		m.rest(t)
	case t.index < 0 && !t.ready && t.flight == nil:
		t.turn = t.timing.first(t.of.began, now)
		m.queue.set(t, t.turn)
	}
}

// rest takes a task out of wherever it waits, and drops the result of what is under way. Callers hold mu.
func (m *Manager) rest(t *task) {
	m.queue.drop(t)
	t.ready = false
	if t.flight != nil {
		m.giveUp(t.flight)
	}
}

// Cleanup forgets the pods that keep does not want. It returns at once.
func (m *Manager) Cleanup(_ context.Context, keep func(types.UID) bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for uid, p := range m.pods {
		if keep(uid) {
			continue
		}
		for _, in := range p.instances {
			m.end(in)
		}
		delete(m.pods, uid)
	}
	return nil
}

package status

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// Manager delivers statuses to a sink: many pods at once, one pod in order, the newest only. What changes nothing is not
// sent; a change of readiness or the end of a pod goes before everything else. Its methods may be called concurrently.
type Manager struct {
	sink podmill.StatusSink
	opts options
	wake chan struct{} // holds one token when there is something to look at

	mu       sync.Mutex
	entries  map[types.UID]*entry
	queue    queue
	inFlight int
}

// entry is what the manager knows of one pod. It is in the queue, or it is being sent, or there is nothing to send.
type entry struct {
	pod    *corev1.Pod
	status corev1.PodStatus
	told   *corev1.Pod // pod with status in place of its own, nil until somebody asks for it
	known  bool        // status was set
	dirty  bool        // status was not delivered yet
	finish bool        // the pod is done, and the sink was not told yet

	due      time.Time
	urgent   bool
	index    int // in the queue; -1 when it is not there
	sending  bool
	failures int
}

// New returns a manager that delivers to sink once it runs.
func New(sink podmill.StatusSink, opts ...Option) *Manager {
	return &Manager{sink: sink, opts: newOptions(opts), wake: make(chan struct{}, 1), entries: map[types.UID]*entry{}}
}

// Set makes status the pod's newest. It returns at once, and does nothing where status is what was set before.
func (m *Manager) Set(pod *corev1.Pod, status corev1.PodStatus) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entry(pod)
	if e.known && !e.finish && equality.Semantic.DeepEqual(e.status, status) {
		return
	}
	urgent := urgent(&e.status, &status)
	e.status, e.told, e.known, e.dirty, e.finish = status, nil, true, true, false
	m.schedule(e, urgent)
}

// Finish says that the pod was to be deleted and is done. The sink is told after the newest status was delivered; then the
// pod is forgotten, unless Set is called again before.
func (m *Manager) Finish(pod *corev1.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entry(pod)
	e.finish = true
	m.schedule(e, true)
}

// Status returns the newest status of a pod, delivered or not.
func (m *Manager) Status(pod types.UID) (corev1.PodStatus, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[pod]
	if e == nil || !e.known {
		return corev1.PodStatus{}, false
	}
	return e.status, true
}

// Pods returns every pod that has a status, with the newest one in place of its own. They are shared and read-only, and the same objects as the last time
// as long as nothing of them has changed: whoever looks again and again sees at once what is new.
func (m *Manager) Pods() []*corev1.Pod {
	m.mu.Lock()
	defer m.mu.Unlock()
	pods := make([]*corev1.Pod, 0, len(m.entries))
	for _, e := range m.entries {
		if !e.known {
			continue
		}
		if e.told == nil {
			pod := *e.pod
			pod.Status = e.status
			e.told = &pod
		}
		pods = append(pods, e.told)
	}
	return pods
}

// Cleanup finishes every pod that nobody keeps.
func (m *Manager) Cleanup(_ context.Context, keep func(types.UID) bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for uid, e := range m.entries {
		if !e.finish && !keep(uid) {
			e.finish = true
			m.schedule(e, true)
		}
	}
	return nil
}

// Run delivers until ctx ends, and then what is still waiting for as long as [WithFlushTimeout] says. It always returns nil.
func (m *Manager) Run(ctx context.Context) error {
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	var sends sync.WaitGroup
	defer sends.Wait()
	defer stop()

	ended, flushed := ctx.Done(), make(<-chan time.Time)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for draining := false; ; {
		last := draining // of this round: a send goes on when the next has begun
		next, idle := m.start(last, func(e *entry) {
			sends.Go(func() { m.send(sending, e, last) })
		})
		if draining && idle {
			return nil
		}
		timer.Reset(next)
		select {
		case <-m.wake:
		case <-timer.C:
		case <-ended:
			draining, ended, flushed = true, nil, time.After(m.opts.flush)
		case <-flushed:
			return nil
		}
	}
}

// start hands out what is due, as far as there is room, and returns how long there is nothing more to do.
func (m *Manager) start(draining bool, send func(*entry)) (next time.Duration, idle bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	next = time.Hour
	for m.queue.Len() > 0 && m.inFlight < m.opts.parallel {
		e := m.queue[0]
		if wait := time.Until(e.due); wait > 0 && !draining {
			next = wait
			break
		}
		m.queue.remove(e)
		e.sending = true
		m.inFlight++
		send(e)
	}
	return next, m.queue.Len() == 0 && m.inFlight == 0
}

// send delivers one pod's newest status, and its end where that has come.
func (m *Manager) send(ctx context.Context, e *entry, last bool) {
	ctx, cancel := context.WithTimeout(ctx, m.opts.timeout)
	defer cancel()
	m.mu.Lock()
	pod, status, dirty, finish := e.pod, e.status, e.dirty, e.finish
	e.dirty = false
	m.mu.Unlock()

	var err error
	if dirty {
		begin := time.Now()
		err = m.sink.UpdateStatus(ctx, pod, &status)
		m.opts.observer.sent(podmill.RefOf(pod), time.Since(begin), err)
	}
	if finish && (err == nil || errors.Is(err, podmill.ErrGone)) {
		m.mu.Lock()
		finish = e.finish // unless it has come back meanwhile
		m.mu.Unlock()
		if finish {
			err = m.sink.FinishPod(ctx, pod)
		}
	}
	if errors.Is(err, podmill.ErrGone) {
		err = nil // there is nobody to tell any more
	}

	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.poke()
	m.inFlight--
	e.sending = false
	if err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "status not delivered", "pod", podmill.RefOf(pod).String(), "attempt", e.failures+1)
		m.failed(e, dirty, last)
		return
	}
	m.delivered(e, finish)
}

// delivered notes that a delivery has succeeded, and goes on with what has come since. Callers hold mu.
func (m *Manager) delivered(e *entry, finish bool) {
	e.failures = 0
	switch {
	case finish && e.finish && !e.dirty:
		delete(m.entries, e.pod.UID)
	case e.dirty || e.finish && !finish:
		m.schedule(e, e.urgent)
	}
}

// failed notes that a delivery has failed; unless it was the last there is another. Callers hold mu.
func (m *Manager) failed(e *entry, dirty, last bool) {
	e.dirty = e.dirty || dirty
	e.failures++
	if !last {
		m.push(e, false, m.opts.backoff(e.failures))
	}
}

// entry returns the pod's entry with the newest version of the pod in it.
func (m *Manager) entry(pod *corev1.Pod) *entry {
	e := m.entries[pod.UID]
	if e == nil {
		e = &entry{index: -1}
		m.entries[pod.UID] = e
	}
	if e.pod != pod {
		e.pod, e.told = pod, nil
	}
	return e
}

// schedule puts the entry where it will be sent: now if it is urgent, else after a moment in which changes that come together become
// one. One that is being sent comes again when that has ended.
func (m *Manager) schedule(e *entry, urgent bool) {
	e.urgent = e.urgent || urgent
	if e.sending {
		return
	}
	wait := m.opts.debounce
	if e.urgent {
		wait = 0
	}
	m.push(e, e.urgent, wait)
	m.poke()
}

func (m *Manager) push(e *entry, urgent bool, wait time.Duration) {
	due := time.Now().Add(wait)
	if e.index >= 0 && e.due.Before(due) && e.urgent == urgent {
		return
	}
	m.queue.remove(e)
	e.due, e.urgent = due, urgent
	m.queue.add(e)
}

func (m *Manager) poke() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// urgent reports whether somebody waits for a change: the pod's readiness turned, or its end has come.
func urgent(old, status *corev1.PodStatus) bool {
	return old.Phase != status.Phase && final(status.Phase) || ready(old) != ready(status)
}

func ready(status *corev1.PodStatus) bool {
	for i := range status.Conditions {
		if c := &status.Conditions[i]; c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

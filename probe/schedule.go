package probe

import (
	"container/list"
	"context"
	"errors"
	"time"

	"github.com/podmill/podmill"
)

const (
	// yields is after how long a probe makes room in the pool for another. So hung probes, however many, keep nobody waiting for long, and
	// a burst of quick ones is carried out a few at a time.
	yields = 50 * time.Millisecond
	// mercy is how long after its timeout a probe may say so itself, before it is given up.
	mercy = 50 * time.Millisecond
	// patience is how long Run waits at its end for probes that do not obey their context.
	patience = time.Second
	// idle is how long the scheduler sleeps when there is nothing to wait for.
	idle = time.Hour
)

// flight is a probe under way. It has a goroutine of its own, and there is none for a probe that is not under way.
type flight struct {
	task   *task
	cancel context.CancelFunc
	began  time.Time
	place  *list.Element // in the pool; nil when it takes up no place any more
	over   bool          // given up: its result is not wanted any more
}

// Run probes until ctx ends, and returns when no probe is under way any more but those that have been given up, or do not end within a second
// of their context. It may be called once.
func (m *Manager) Run(ctx context.Context) error {
	m.mu.Lock()
	if m.run {
		m.mu.Unlock()
		return errors.New("probe was run before")
	}
	m.run = true
	m.mu.Unlock()

	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		m.mu.Lock()
		now := time.Now()
		said := m.advance(ctx, now)
		m.sleeps = m.nextLook(now)
		timer.Reset(m.sleeps.Sub(now))
		m.mu.Unlock()
		m.tell(said)
		select {
		case <-ctx.Done():
		case <-m.wake:
		case <-timer.C:
		}
	}
	m.close(timer)
	return nil
}

// close waits for the flights that are under way.
func (m *Manager) close(timer *time.Timer) {
	timer.Reset(patience)
	for {
		m.mu.Lock()
		m.closing = true
		flying := m.flying
		m.mu.Unlock()
		if flying == 0 {
			return
		}
		select {
		case <-m.wake:
		case <-timer.C:
			return
		}
	}
}

// advance does what is due: it begins the probes whose turn has come, as far as there is room, and gives up those that do not come
// back. Callers hold mu, and tell what it returns when they do not any more.
func (m *Manager) advance(ctx context.Context, now time.Time) (said []saying) {
	for len(m.queue) > 0 && !m.queue[0].at.After(now) {
		t := m.queue[0]
		m.queue.drop(t)
		switch {
		case t.flight == nil:
			t.ready = true
			m.ready = append(m.ready, t)
		case !t.flight.over:
			m.giveUp(t.flight)
			said = append(said, m.judge(t, failure(timedOut(t.target)), t.flight.began, now, true))
		default: // it is still not back, a period later
			t.turn = t.at
			said = append(said, m.judge(t, failure(timedOut(t.target)), now, now, true))
		}
	}
	for e := m.pool.Front(); e != nil && now.Sub(e.Value.(*flight).began) >= yields; e = m.pool.Front() {
		m.leave(e.Value.(*flight))
	}
	for len(m.ready) > 0 && m.pool.Len() < m.opts.parallel {
		t := m.ready[0]
		m.ready[0] = nil
		m.ready = m.ready[1:]
		if t.ready { // else it was not wanted any more
			t.ready = false
			m.launch(ctx, t, now)
		}
	}
	return said
}

// nextLook returns when the scheduler has to look again. Callers hold mu.
func (m *Manager) nextLook(now time.Time) time.Time {
	next := now.Add(idle)
	if len(m.queue) > 0 && m.queue[0].at.Before(next) {
		next = m.queue[0].at
	}
	if oldest := m.pool.Front(); oldest != nil && len(m.ready) > 0 {
		if at := oldest.Value.(*flight).began.Add(yields); at.Before(next) {
			next = at
		}
	}
	return next
}

// rouse wakes the scheduler if it sleeps for longer than it may. Callers hold mu.
func (m *Manager) rouse() {
	early := len(m.queue) > 0 && m.queue[0].at.Before(m.sleeps)
	room := len(m.ready) > 0 && m.pool.Len() < m.opts.parallel
	if early || room || m.closing {
		select {
		case m.wake <- struct{}{}:
		default:
		}
	}
}

// launch begins a probe. Callers hold mu.
func (m *Manager) launch(ctx context.Context, t *task, now time.Time) {
	f := &flight{task: t, began: now}
	flying, cancel := context.WithCancel(ctx)
	f.cancel = cancel
	f.place = m.pool.PushBack(f)
	t.flight = f
	m.flying++
	m.queue.set(t, now.Add(t.timing.timeout+mercy))
	target := t.target
	go func() {
		found := m.handlers.probe(flying, target)
		cancel()
		m.land(f, found, ctx.Err() != nil)
	}()
}

// land takes the result of a flight. That of one that was given up is not wanted any more, and neither is one that Run's end has cut short.
func (m *Manager) land(f *flight, found finding, ended bool) {
	m.mu.Lock()
	now := time.Now()
	t := f.task
	t.flight = nil
	var said []saying
	switch {
	case ended:
		m.giveUp(f)
	case !f.over:
		m.giveUp(f)
		m.queue.drop(t)
		said = append(said, m.judge(t, found, f.began, now, false))
	default:
		m.settle(t, now) // nothing, if it has its next turn; else it may be wanted anew
	}
	m.rouse()
	m.mu.Unlock()
	m.tell(said)
}

// giveUp ends a flight's part in the game; its goroutine may go on. Callers hold mu.
func (m *Manager) giveUp(f *flight) {
	if !f.over {
		f.over = true
		f.cancel()
		m.leave(f)
		m.flying--
	}
}

// leave gives a flight's place in the pool to others. Callers hold mu.
func (m *Manager) leave(f *flight) {
	if f.place != nil {
		m.pool.Remove(f.place)
		f.place = nil
	}
}

// judge takes a finding for a task that is wanted, settles what is to be probed next, and returns what is to be told. Callers hold mu.
func (m *Manager) judge(t *task, found finding, began, now time.Time, givenUp bool) saying {
	in := t.of
	s := saying{
		pod: in.pod.spec, warning: found.warning, givenUp: givenUp,
		run: Run{
			Pod: podmill.RefOf(in.pod.spec), Container: in.name, Type: t.kind.name(), Result: found.result, Message: found.message,
			Late: max(0, began.Sub(t.turn)), Took: now.Sub(began),
		},
	}
	if found.result != Unknown {
		s.changed = in.verdict.result(t.kind, found.result == Successful, found.message)
	}
	t.turn = t.timing.next(t.turn, now)
	if in.verdict.wants(t.kind) {
		m.queue.set(t, t.turn)
	}
	if s.changed {
		for _, other := range in.tasks {
			if other != nil {
				m.settle(other, now)
			}
		}
	}
	return s
}

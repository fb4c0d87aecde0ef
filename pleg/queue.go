package pleg

import (
	"container/list"

	"github.com/podmill/podmill"
)

// queue says which pod is inspected next. A pod is looked at by one inspection at a time; whoever asks while one is under way
// gets the next, with all who ask until then. What somebody waits for begins at once, everything else as far as there is room.
type queue struct {
	waiting list.List // of *entry with a next and no now; those that somebody waits for are in front
	room    int       // how many more inspections that nobody waits for may begin
}

// look is one inspection.
type look struct {
	done   chan struct{} // closed when the answer is there
	pod    *podmill.RuntimePod
	err    error
	waited bool // somebody waits for it
	over   bool // the runtime has answered
	room   bool // it takes room
}

// ask returns the inspection of a pod that has not begun yet.
func (q *queue) ask(e *entry, waited bool) *look {
	if e.next == nil {
		e.next = &look{done: make(chan struct{})}
	}
	e.next.waited = e.next.waited || waited
	if e.now == nil {
		q.place(e)
	}
	return e.next
}

func (q *queue) place(e *entry) {
	switch waited := e.next.waited; {
	case e.place == nil && waited:
		e.place = q.waiting.PushFront(e)
	case e.place == nil:
		e.place = q.waiting.PushBack(e)
	case waited:
		q.waiting.MoveToFront(e.place)
	}
}

// begin returns a pod whose inspection begins now, nil if there is none or no room.
func (q *queue) begin() *entry {
	front := q.waiting.Front()
	if front == nil {
		return nil
	}
	e := front.Value.(*entry) //nolint:forcetypeassert // only place puts there
	if !e.next.waited {
		if q.room == 0 {
			return nil
		}
		q.room--
		e.next.room = true
	}
	q.waiting.Remove(front)
	e.now, e.next, e.place, e.stale, e.heard = e.next, nil, nil, false, nil
	return e
}

// leave gives back the room of an inspection. It is idempotent.
func (q *queue) leave(l *look) {
	if l.room {
		l.room = false
		q.room++
	}
}

// end ends the inspection of a pod that is under way.
func (q *queue) end(e *entry) {
	q.leave(e.now)
	e.now = nil
	if e.next != nil {
		q.place(e)
	}
}

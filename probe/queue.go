package probe

import (
	"container/heap"
	"time"
)

// task is one probe of one instance of a container.
type task struct {
	of     *instance
	kind   kind
	target target
	timing timing

	turn   time.Time // when it is, or was, to begin
	at     time.Time // when the scheduler has to look at it again; valid while it is in the queue
	index  int       // in the queue; -1 when it is not there
	ready  bool      // its turn has come, and it waits for a place in the pool
	flight *flight   // under way; at most one
}

// queue is a heap of tasks, the next one first.
type queue []*task

// set puts a task in, or moves it.
func (q *queue) set(t *task, at time.Time) {
	t.at = at
	if t.index < 0 {
		heap.Push(q, t)
	} else {
		heap.Fix(q, t.index)
	}
}

// drop takes a task out, if it is there.
func (q *queue) drop(t *task) {
	if t.index >= 0 {
		heap.Remove(q, t.index)
	}
}

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].at.Before(q[j].at) }
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push implements [heap.Interface].
func (q *queue) Push(x any) {
	t := x.(*task) //nolint:forcetypeassert // only set pushes
	t.index = len(*q)
	*q = append(*q, t)
}

// Pop implements [heap.Interface].
func (q *queue) Pop() any {
	last := len(*q) - 1
	t := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	t.index = -1
	return t
}

package status

import "container/heap"

// queue is a heap of entries: the urgent ones first, then by the time that they are due.
type queue []*entry

func (q *queue) add(e *entry) { heap.Push(q, e) }

func (q *queue) remove(e *entry) {
	if e.index >= 0 {
		heap.Remove(q, e.index)
	}
}

// Len, Less, Swap, Push and Pop are what container/heap asks.
func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	if q[i].urgent != q[j].urgent {
		return q[i].urgent
	}
	return q[i].due.Before(q[j].due)
}

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *queue) Push(x any) {
	e := x.(*entry) //nolint:forcetypeassert // only add pushes
	e.index = len(*q)
	*q = append(*q, e)
}

func (q *queue) Pop() any {
	old := *q
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	e.index = -1
	return e
}

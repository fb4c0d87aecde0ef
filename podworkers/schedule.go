package podworkers

import (
	"container/heap"
	"time"
)

// schedule holds the pods whose next sync is due at some time, the earliest first: one timer serves them all.
//
// A pod is put later by leaving it where it is: when its old time comes it is looked at again and put back. So a sync, which mostly moves
// the next one further away, costs nothing here.
type schedule []*incarnation

// put has the pod looked at no later than at, and reports whether it is the first now.
func (s *schedule) put(inc *incarnation, at time.Time) (first bool) {
	switch {
	case inc.index == 0:
		inc.at = at
		heap.Push(s, inc)
	case at.Before(inc.at):
		inc.at = at
		heap.Fix(s, int(inc.index-1))
	default:
		return false
	}
	return (*s)[0] == inc
}

// drop takes a pod out.
func (s *schedule) drop(inc *incarnation) {
	if inc.index > 0 {
		heap.Remove(s, int(inc.index-1))
	}
}

// due takes out the first pod if its time has come, and returns nil if not.
func (s *schedule) due(now time.Time) *incarnation {
	if len(*s) == 0 || (*s)[0].at.After(now) {
		return nil
	}
	return heap.Pop(s).(*incarnation)
}

// next says when the first pod has to be looked at.
func (s schedule) next() (at time.Time, ok bool) {
	if len(s) == 0 {
		return time.Time{}, false
	}
	return s[0].at, true
}

// Len, Less, Swap, Push and Pop are what container/heap asks for.
func (s schedule) Len() int           { return len(s) }
func (s schedule) Less(i, j int) bool { return s[i].at.Before(s[j].at) }
func (s schedule) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = int32(i+1), int32(j+1)
}

func (s *schedule) Push(x any) {
	inc := x.(*incarnation)
	*s = append(*s, inc)
	inc.index = int32(len(*s))
}

func (s *schedule) Pop() any {
	last := len(*s) - 1
	inc := (*s)[last]
	(*s)[last] = nil
	*s, inc.index = (*s)[:last], 0
	return inc
}

// queue holds the pods to be synced at once, first come first served. It is a list through the pods themselves: each is in it
// at most once, and it costs nothing.
type queue struct{ first, last *incarnation }

func (q *queue) push(inc *incarnation) {
	inc.queued = true
	if q.first == nil {
		q.first = inc
	} else {
		q.last.follows = inc
	}
	q.last = inc
}

// pop takes out the first pod, nil if there is none. Those that are not queued any more were forgotten meanwhile.
func (q *queue) pop() *incarnation {
	for inc := q.first; inc != nil; inc = q.first {
		q.first, inc.follows = inc.follows, nil
		if inc.queued {
			inc.queued = false
			return inc
		}
	}
	return nil
}

package event

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The bounds of a ledger's memory. With maxMessage they come to some 4 MiB at the worst.
const (
	maxWaiting = 1024
	maxRepeats = 1024
	maxMessage = 1024 // bytes, as the API server takes
)

// line is one line of the output. Its names are those of a corev1.Event.
type line struct {
	LastTimestamp  time.Time              `json:"lastTimestamp"`
	FirstTimestamp time.Time              `json:"firstTimestamp,omitzero"` // of the first of several
	Type           string                 `json:"type"`
	Reason         string                 `json:"reason"`
	About          corev1.ObjectReference `json:"involvedObject"`
	Message        string                 `json:"message"`
	Count          int32                  `json:"count"`
}

// saying is what makes two events the same.
type saying struct {
	about                      corev1.ObjectReference
	eventType, reason, message string
}

// repeat is a saying that is remembered until the end of its window. It was written with a count of written.
type repeat struct {
	saying
	first, last    time.Time
	end            time.Time // take sees to it; until then what is said again counts
	count, written int32
}

func (r *repeat) line() line {
	l := line{
		LastTimestamp: r.last, Type: r.eventType, Reason: r.reason, About: r.about, Message: r.message, Count: r.count,
	}
	if r.count > 1 {
		l.FirstTimestamp = r.first
	}
	return l
}

// ledger decides what is written of the events that it is told, and when. It has no clock, no lock and no goroutine of its own.
//
// All windows are equally long, so that the order of their beginnings in queue is the order of their ends.
type ledger struct {
	window    time.Duration
	perSecond float64
	burst     float64

	waiting []line // to be written
	repeats map[saying]*repeat
	queue   []*repeat
	tokens  float64
	filled  time.Time // when tokens were last counted
	stats   Stats
}

func newLedger(window time.Duration, perSecond float64, burst int) *ledger {
	return &ledger{window: window, perSecond: perSecond, burst: float64(burst), tokens: float64(burst), repeats: map[saying]*repeat{}}
}

// note takes an event. It is written at once, unless it was said before in its window, or too much is being said.
func (l *ledger) note(s saying, now time.Time) {
	if len(s.message) > maxMessage {
		s.message = strings.ToValidUTF8(s.message[:maxMessage], "")
	}
	// A pod's resource version changes with each status: what is said of it stays the same.
	s.about.ResourceVersion = ""
	if r := l.repeats[s]; r != nil {
		r.count++
		r.last = now
		l.stats.Repeated++
		return
	}
	r := &repeat{saying: s, first: now, last: now, end: now.Add(l.window), count: 1, written: 1}
	if !l.allow(now) || !l.write(r) {
		l.stats.Dropped++
		return
	}
	if l.window > 0 {
		l.remember(r)
	}
}

// allow takes a token of those that come in by the second, up to the burst.
func (l *ledger) allow(now time.Time) bool {
	l.tokens = min(l.burst, l.tokens+l.perSecond*max(0, now.Sub(l.filled).Seconds()))
	l.filled = now
	if l.tokens < 1 {
		return false
	}
	l.tokens--
	return true
}

// write puts a line among those that wait, if there is room.
func (l *ledger) write(r *repeat) bool {
	if len(l.waiting) == maxWaiting {
		return false
	}
	l.waiting = append(l.waiting, r.line())
	return true
}

func (l *ledger) remember(r *repeat) {
	if len(l.queue) == maxRepeats {
		l.close(l.queue[0])
		l.queue = l.queue[1:]
	}
	l.repeats[r.saying] = r
	l.queue = append(l.queue, r)
}

// close ends a window: what was said again is written with its count.
func (l *ledger) close(r *repeat) {
	delete(l.repeats, r.saying)
	if r.count > r.written && !l.write(r) {
		l.stats.Dropped++
	}
}

// take returns what is to be written at now, and how long it is until there may be more if nothing happens.
func (l *ledger) take(now time.Time) (lines []line, next time.Duration) {
	for len(l.queue) > 0 && !l.queue[0].end.After(now) {
		r := l.queue[0]
		l.queue = l.queue[1:]
		l.close(r)
		if r.count > r.written { // it goes on: the same saying in one window more, with its count
			r.written, r.end = r.count, now.Add(l.window)
			l.remember(r)
		}
	}
	next = time.Hour
	if len(l.queue) > 0 {
		next = l.queue[0].end.Sub(now)
	}
	lines, l.waiting = l.waiting, nil
	return lines, next
}

// takeAll returns everything that there is to write, and forgets it.
func (l *ledger) takeAll() (lines []line) {
	for _, r := range l.queue {
		l.close(r)
	}
	l.queue = nil
	lines, l.waiting = l.waiting, nil
	return lines
}

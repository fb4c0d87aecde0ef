package podmilltest

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"
)

// Op names an operation of a runtime: the method's name.
type Op string

// The operations.
const (
	OpListPods        Op = "ListPods"
	OpInspectPod      Op = "InspectPod"
	OpInspectSandbox  Op = "InspectSandbox"
	OpRunSandbox      Op = "RunSandbox"
	OpStopSandbox     Op = "StopSandbox"
	OpRemoveSandbox   Op = "RemoveSandbox"
	OpCreateContainer Op = "CreateContainer"
	OpStartContainer  Op = "StartContainer"
	OpStopContainer   Op = "StopContainer"
	OpRemoveContainer Op = "RemoveContainer"
	OpPullImage       Op = "PullImage"
	OpInspectImage    Op = "InspectImage"
	OpListImages      Op = "ListImages"
	OpRemoveImage     Op = "RemoveImage"
	OpResizeContainer Op = "ResizeContainer"
	OpExec            Op = "Exec"
	OpStreamEvents    Op = "StreamEvents"
	OpRuntimeStatus   Op = "RuntimeStatus"
	OpReopenLog       Op = "ReopenLog"
)

// reads reports that an operation only looks.
func (o Op) reads() bool {
	switch o {
	case OpListPods, OpInspectPod, OpInspectSandbox, OpInspectImage, OpListImages, OpRuntimeStatus:
		return true
	default:
		return false
	}
}

// Log is what happened in a [Runtime], in the order in which it began. Calls that only look are counted and not told, unless they
// fail. Of very many entries the older half is forgotten. It may be used concurrently.
type Log struct {
	start time.Time

	mu      sync.Mutex
	counts  map[Op]int
	entries []*Entry
}

// Entry is one thing that happened: a call, or something that the containers did by themselves.
type Entry struct {
	At    time.Duration // since the runtime was made
	Op    Op            // empty for what no call did
	About string        // such as "default/a web#0 grace=30s"
	Took  time.Duration // of a call that has returned
	Err   error         // that it returned
}

// String returns the entry as a line of the story.
func (e Entry) String() string {
	line := fmt.Sprintf("%.3fs ", e.At.Seconds())
	if e.Op != "" {
		line += string(e.Op) + " "
	}
	line += e.About
	if took := e.Took.Round(time.Millisecond); took > 0 {
		line += fmt.Sprintf(" took=%v", took)
	}
	if e.Err != nil {
		line += fmt.Sprintf(": %v", e.Err)
	}
	return line
}

func newLog() *Log { return &Log{start: time.Now(), counts: map[Op]int{}} }

// Count returns how many calls of an operation have begun.
func (l *Log) Count(op Op) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts[op]
}

// Counts returns how many calls of each operation have begun.
func (l *Log) Counts() map[Op]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.counts)
}

// Entries returns what happened until now.
func (l *Log) Entries() []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	entries := make([]Entry, len(l.entries))
	for i, e := range l.entries {
		entries[i] = *e
	}
	return entries
}

// String returns the story, a line for each entry.
func (l *Log) String() string {
	var b strings.Builder
	for _, e := range l.Entries() {
		b.WriteString(e.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// Reset forgets counts and entries; time goes on.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.counts)
	l.entries = nil
}

// Note adds a line of the caller's own to the story.
func (l *Log) Note(format string, args ...any) {
	l.add(&Entry{About: fmt.Sprintf(format, args...)})
}

// now is the time since the runtime was made.
func (l *Log) now() time.Duration { return time.Since(l.start) }

func (l *Log) add(e *Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.At = l.now()
	l.keep(e)
}

// kept is how many entries a log has at most, so that an agent may run on a runtime in memory for as long as it likes.
const kept = 100_000

func (l *Log) keep(e *Entry) {
	if len(l.entries) == kept {
		l.entries = append(l.entries[:0], l.entries[kept/2:]...)
	}
	l.entries = append(l.entries, e)
}

// begin notes that a call has begun, and returns what to call with its error when it returns.
func (l *Log) begin(op Op, about string) (end func(err error)) {
	e := &Entry{Op: op, About: about}
	l.mu.Lock()
	l.counts[op]++
	e.At = l.now()
	if !op.reads() {
		l.keep(e)
	}
	l.mu.Unlock()
	return func(err error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		e.Took, e.Err = l.now()-e.At, err
		if op.reads() && err != nil {
			l.keep(e)
		}
	}
}

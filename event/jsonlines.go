package event

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
)

// Option changes a default of [JSONLines].
type Option func(*options)

type options struct {
	window    time.Duration
	perSecond float64
	burst     int
}

// WithWindow is how long what is said again is only counted; the default is 5 minutes. Zero writes everything.
func WithWindow(d time.Duration) Option { return func(o *options) { o.window = d } }

// WithRate bounds what is written: so many events a second, after a burst; the default is 50 and 100, as the kubelet's. Repeats do
// not count.
func WithRate(perSecond float64, burst int) Option {
	return func(o *options) { o.perSecond, o.burst = perSecond, burst }
}

// Recorder is a [podmill.EventRecorder] that writes.
type Recorder struct {
	w    io.Writer
	wake chan struct{}

	mu     sync.Mutex
	ledger *ledger
}

// Stats counts what became of events.
type Stats struct {
	Written  uint64 // lines that the writer took
	Repeated uint64 // events that were counted and not written at once
	Dropped  uint64 // events and lines that are lost: too many, or the writer failed
}

// JSONLines returns a recorder that writes one JSON object a line to w, as long as its Run runs. What is said before that waits.
func JSONLines(w io.Writer, opts ...Option) *Recorder {
	o := options{window: 5 * time.Minute, perSecond: 50, burst: 100}
	for _, opt := range opts {
		opt(&o)
	}
	return &Recorder{w: w, wake: make(chan struct{}, 1), ledger: newLedger(o.window, o.perSecond, o.burst)}
}

// Event takes an event. It returns at once.
func (r *Recorder) Event(about corev1.ObjectReference, eventType, reason, message string) {
	r.mu.Lock()
	r.ledger.note(saying{about, eventType, reason, message}, time.Now())
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Stats returns the counts so far.
func (r *Recorder) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ledger.stats
}

// Run writes until ctx ends, and then what has not been written yet. It always returns nil: a writer that fails is tried again with the
// next event.
func (r *Recorder) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	out := output{w: r.w, log: logr.FromContextOrDiscard(ctx)}
	for {
		select {
		case <-r.wake:
		case <-timer.C:
		case <-ctx.Done():
			r.mu.Lock()
			lines := r.ledger.takeAll()
			r.mu.Unlock()
			r.write(&out, lines)
			return nil
		}
		r.mu.Lock()
		lines, next := r.ledger.take(time.Now())
		r.mu.Unlock()
		r.write(&out, lines)
		timer.Reset(next)
	}
}

func (r *Recorder) write(out *output, lines []line) {
	for _, l := range lines {
		err := out.write(l)
		r.mu.Lock()
		if err == nil {
			r.ledger.stats.Written++
		} else {
			r.ledger.stats.Dropped++
		}
		r.mu.Unlock()
	}
}

// output writes lines to a writer that may fail and recover, such as a file on a disk that is full.
type output struct {
	w       io.Writer
	log     logr.Logger
	buf     bytes.Buffer
	failing bool
	torn    bool // the writer took a part of the last line
}

func (o *output) write(l line) error {
	o.buf.Reset()
	if o.torn {
		o.buf.WriteByte('\n')
	}
	l.LastTimestamp, l.FirstTimestamp = stamp(l.LastTimestamp), stamp(l.FirstTimestamp)
	enc := json.NewEncoder(&o.buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(l)
	if err == nil {
		var n int
		n, err = o.w.Write(o.buf.Bytes())
		o.torn = err != nil && (n > 0 || o.torn)
	}
	if err != nil && !o.failing {
		o.log.Error(err, "events cannot be written and are lost until they can")
	}
	o.failing = err != nil
	return err
}

// stamp is how a time is written: to the millisecond, for people anywhere.
func stamp(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Truncate(time.Millisecond)
}

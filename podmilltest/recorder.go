package podmilltest

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// EventRecorder is a [podmill.EventRecorder] that keeps all events.
type EventRecorder struct {
	mu     sync.Mutex
	events []Event
}

var _ podmill.EventRecorder = (*EventRecorder)(nil)

// Event is what a recorder was told.
type Event struct {
	About   corev1.ObjectReference
	Type    string
	Reason  string
	Message string
}

// String returns the event as a line: Normal Pulled default/web spec.containers{nginx}: message.
func (e Event) String() string {
	about := e.About.Namespace + "/" + e.About.Name
	if e.About.FieldPath != "" {
		about += " " + e.About.FieldPath
	}
	return fmt.Sprintf("%s %s %s: %s", e.Type, e.Reason, about, e.Message)
}

// NewEventRecorder returns an empty recorder.
func NewEventRecorder() *EventRecorder { return &EventRecorder{} }

// Event implements [podmill.EventRecorder].
func (r *EventRecorder) Event(about corev1.ObjectReference, eventType, reason, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, Event{about, eventType, reason, message})
}

// Events returns what was recorded, the oldest first.
func (r *EventRecorder) Events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Reasons returns the reasons of all events, the oldest first.
func (r *EventRecorder) Reasons() []string {
	var reasons []string
	for _, e := range r.Events() {
		reasons = append(reasons, e.Reason)
	}
	return reasons
}

// String returns a line for each event.
func (r *EventRecorder) String() string {
	var b strings.Builder
	for _, e := range r.Events() {
		b.WriteString(e.String() + "\n")
	}
	return b.String()
}

package pleg

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// EventType is the kubelet's name for what has happened to a container or a sandbox.
type EventType string

// The types of events.
const (
	ContainerStarted EventType = "ContainerStarted"
	ContainerDied    EventType = "ContainerDied"
	ContainerRemoved EventType = "ContainerRemoved"
	// ContainerChanged says that a container was created, or is in a state that the runtime cannot tell.
	ContainerChanged EventType = "ContainerChanged"
	// PodSync says that something changed which is not a step in the life of a container, such as the pod's addresses.
	PodSync EventType = "PodSync"
)

// Event is a difference between two observations of a pod.
type Event struct {
	Pod  podmill.PodRef
	Type EventType
	ID   string // of the container or sandbox; empty for PodSync
}

// Observer is told of what a PLEG does and sees. A nil func is not called; each returns at once.
type Observer struct {
	// Event follows each difference, after the new observation can be read.
	Event func(Event)
	// Relist follows each listing.
	Relist func(took time.Duration, err error)
	// Inspect follows each inspection.
	Inspect func(pod types.UID, took time.Duration, err error)
	// Stream says that the runtime's stream of events is up or, with a reason, that it is down.
	Stream func(up bool, reason error)
}

func (o Observer) event(e Event) {
	if o.Event != nil {
		o.Event(e)
	}
}

func (o Observer) relist(took time.Duration, err error) {
	if o.Relist != nil {
		o.Relist(took, err)
	}
}

func (o Observer) inspect(pod types.UID, took time.Duration, err error) {
	if o.Inspect != nil {
		o.Inspect(pod, took, err)
	}
}

func (o Observer) stream(up bool, reason error) {
	if o.Stream != nil {
		o.Stream(up, reason)
	}
}

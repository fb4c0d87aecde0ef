package apiserver

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/podmill/podmill"
)

const (
	waitingEvents  = 1000
	eventsRate     = 50 // a second, as the kubelet's eventRecordQPS
	eventsBurst    = 100
	eventTries     = 3
	eventTimeout   = 10 * time.Second
	flushTimeout   = 2 * time.Second
	eventComponent = "kubelet" // by which people and tools find a node's events
)

// EventRecorder is a [podmill.EventRecorder] that writes events to the API server.
//
// What is said again is counted on the event that said it first. Of one object and reason, ten events within ten minutes that differ in their
// message become one; of one object, 25 events are written at once and then one every five minutes: client-go's rules, as in every kubelet. Not more than 50 events
// a second are written, after a burst of 100. What is too much, and what the server does not take in three attempts, is dropped and counted.
type EventRecorder struct {
	client  *Client
	queue   chan *corev1.Event
	dropped atomic.Uint64
}

var _ podmill.EventRecorder = (*EventRecorder)(nil)

// NewEventRecorder returns a recorder of the client's node. It writes while its Run runs; what is said before that waits.
func NewEventRecorder(client *Client) *EventRecorder {
	return &EventRecorder{client: client, queue: make(chan *corev1.Event, waitingEvents)}
}

// Event implements [podmill.EventRecorder].
func (r *EventRecorder) Event(about corev1.ObjectReference, eventType, reason, message string) {
	select {
	case r.queue <- r.event(about, eventType, reason, message, time.Now()):
	default:
		r.dropped.Add(1)
	}
}

// Dropped returns how many events are lost.
func (r *EventRecorder) Dropped() uint64 { return r.dropped.Load() }

func (r *EventRecorder) event(about corev1.ObjectReference, eventType, reason, message string, now time.Time) *corev1.Event {
	namespace := about.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	at := metav1.NewTime(now)
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s.%x", about.Name, now.UnixNano())},
		InvolvedObject: about, Type: eventType, Reason: reason, Message: message,
		FirstTimestamp: at, LastTimestamp: at, Count: 1,
		Source:              corev1.EventSource{Component: eventComponent, Host: r.client.node},
		ReportingController: eventComponent, ReportingInstance: r.client.node,
	}
}

// Run writes until ctx ends, and then what still waits, for two seconds at most. It returns nil.
func (r *EventRecorder) Run(ctx context.Context) error {
	w := &eventWriter{
		recorder: r, log: logr.FromContextOrDiscard(ctx), rate: flowcontrol.NewTokenBucketRateLimiter(eventsRate, eventsBurst),
		correlator: record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{}),
	}
	writing, stop := context.WithCancel(context.WithoutCancel(ctx)) // goes on for a moment when ctx has ended
	defer stop()
	context.AfterFunc(ctx, func() { time.AfterFunc(flushTimeout, stop) })
	for {
		select {
		case <-ctx.Done():
			w.rest(writing)
			return nil
		case e := <-r.queue:
			w.write(writing, e)
		}
	}
}

// eventWriter writes one event after another.
type eventWriter struct {
	recorder   *EventRecorder
	log        logr.Logger
	rate       flowcontrol.RateLimiter
	correlator *record.EventCorrelator
}

// rest writes what waits.
func (w *eventWriter) rest(ctx context.Context) {
	for {
		select {
		case e := <-w.recorder.queue:
			w.write(ctx, e)
		default:
			return
		}
	}
}

// write writes an event, unless there is too much of its kind. An event that waits for the server when ctx ends is lost.
func (w *eventWriter) write(ctx context.Context, e *corev1.Event) {
	result, err := w.correlator.EventCorrelate(e)
	if err == nil && result.Skip {
		w.recorder.dropped.Add(1)
		return
	}
	for try := range eventTries {
		if err == nil {
			err = w.rate.Wait(ctx)
		}
		if err == nil {
			if err = w.send(ctx, result); err == nil {
				return
			}
		}
		if refused := apierrors.APIStatus(nil); errors.As(err, &refused) || ctx.Err() != nil || try == eventTries-1 {
			break // it will be refused again, or there is no more time
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second << try):
		}
		err = nil
	}
	w.recorder.dropped.Add(1)
	w.log.Error(err, "an event is lost", "reason", e.Reason, "object", e.InvolvedObject.Namespace+"/"+e.InvolvedObject.Name)
}

// send creates the event, or counts it on the one that said the same before.
func (w *eventWriter) send(ctx context.Context, result *record.EventCorrelateResult) error {
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	e, written := result.Event, &corev1.Event{}
	err := error(nil)
	if e.Count > 1 {
		err = w.recorder.client.core.Patch(types.StrategicMergePatchType).Namespace(e.Namespace).Resource("events").Name(e.Name).
			Body(result.Patch).Do(ctx).Into(written)
	}
	if e.Count <= 1 || apierrors.IsNotFound(err) { // it may have outlived its hour
		e.ResourceVersion = ""
		err = w.recorder.client.core.Post().Namespace(e.Namespace).Resource("events").Body(e).Do(ctx).Into(written)
	}
	if err == nil {
		w.correlator.UpdateState(written)
	}
	return err
}

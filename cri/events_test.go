package cri

import (
	"context"
	"errors"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill"
)

func event(kind runtimeapi.ContainerEventType, id, sandbox, pod string) *runtimeapi.ContainerEventResponse {
	e := &runtimeapi.ContainerEventResponse{ContainerId: id, ContainerEventType: kind}
	if pod != "" {
		e.PodSandboxStatus = &runtimeapi.PodSandboxStatus{Id: sandbox, Labels: labels(pod)}
	}
	return e
}

const (
	started = runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT
	stopped = runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT
	deleted = runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT
)

// The event of a sandbox that has gone may not say whose it was. What is remembered for that is of sandboxes that are there.
func TestOwnersOfEvents(t *testing.T) {
	o := owners{}
	for i, tc := range []struct {
		event *runtimeapi.ContainerEventResponse
		want  types.UID
	}{
		{nil, ""},
		{event(started, "c1", "", ""), ""},
		{event(started, "s1", "s1", "a"), "uid-a"},
		{event(started, "c1", "s1", "a"), "uid-a"},
		{event(stopped, "s1", "", ""), "uid-a"}, // its status could not be had
		{event(deleted, "c1", "s1", "a"), "uid-a"},
		{&runtimeapi.ContainerEventResponse{ContainerId: "c9", ContainersStatuses: []*runtimeapi.ContainerStatus{{}, {Labels: labels("b")}}}, "uid-b"},
		{event(deleted, "s1", "", ""), "uid-a"},
		{event(deleted, "s1", "", ""), ""},
		{event(started, "s2", "s2", "c"), "uid-c"},
		{event(deleted, "s2", "s2", "c"), "uid-c"},
	} {
		if got := o.of(tc.event); got != tc.want {
			t.Errorf("event %d is of %q, want %q", i, got, tc.want)
		}
	}
	if len(o) != 0 {
		t.Errorf("it remembers %v", o)
	}
}

func TestEventsArePassedOn(t *testing.T) {
	s := newServer(t)
	connected := make(chan struct{})
	s.stream = func(stream grpc.ServerStream) error {
		<-connected
		for _, e := range []*runtimeapi.ContainerEventResponse{event(started, "s1", "s1", "a"), event(started, "x", "", ""), event(deleted, "s1", "", "")} {
			if err := stream.SendMsg(e); err != nil {
				return err
			}
		}
		return status.Error(codes.Unavailable, "going down")
	}
	var got []podmill.RuntimeEvent
	err := s.start(t).dial(t).StreamEvents(t.Context(), func() { close(connected) }, func(e podmill.RuntimeEvent) { got = append(got, e) })
	is(t, err, ErrUnavailable, errors.ErrUnsupported)
	want := []podmill.RuntimeEvent{{Pod: "uid-a", ID: "s1", State: podmill.StateRunning}, {Pod: "uid-a", ID: "s1"}}
	if !slices.Equal(got, want) {
		t.Errorf("events of %v, want %v", got, want)
	}
}

func TestEventsEndWithTheirContext(t *testing.T) {
	s := newServer(t)
	s.stream = func(stream grpc.ServerStream) error {
		<-stream.Context().Done()
		return stream.Context().Err()
	}
	ctx, cancel := context.WithCancel(t.Context())
	is(t, s.start(t).dial(t).StreamEvents(ctx, cancel, nil), context.Canceled)
}

// A runtime without events says so, and nobody is told of a stream that never was.
func TestRuntimeWithoutEvents(t *testing.T) {
	s := newServer(t)
	refused := make(chan struct{})
	s.stream = func(grpc.ServerStream) error {
		defer close(refused)
		return status.Error(codes.Unimplemented, "unknown method GetContainerEvents for service runtime.v1.RuntimeService")
	}
	version := s.answers["Version"]
	c := s.start(t).dial(t)
	s.on("Version", func(ctx context.Context, request any) (any, error) {
		<-refused
		return version(ctx, request)
	})
	err := c.StreamEvents(t.Context(), func() { t.Log("connected, for a moment: the refusal was overtaken") }, nil)
	is(t, err, errors.ErrUnsupported)
}

// A restart under the stream ends it, before it is connected and after.
func TestEventsOfARuntimeThatIsAway(t *testing.T) {
	s := newServer(t).start(t)
	c := s.dial(t)
	s.stop()
	is(t, c.StreamEvents(t.Context(), func() { t.Error("connected") }, nil), ErrUnavailable, errors.ErrUnsupported)
}

// A stream that is there and behind which nothing answers is not connected.
func TestEventsOfARuntimeThatAnswersNothing(t *testing.T) {
	s := newServer(t)
	s.stream = func(stream grpc.ServerStream) error {
		<-stream.Context().Done()
		return stream.Context().Err()
	}
	c := s.start(t).dial(t)
	s.on("Version", fails(status.Error(codes.Unavailable, "going down")))
	is(t, c.StreamEvents(t.Context(), func() { t.Error("connected") }, nil), ErrUnavailable, errors.ErrUnsupported)
}

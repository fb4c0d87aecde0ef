package cri

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill"
)

// streams answers the streaming lists in batches of seven, and breaks off after so many; fewer than none never does.
func streams(sandboxes []*runtimeapi.PodSandbox, containers []*runtimeapi.Container, batches int) func(grpc.ServerStream) error {
	return func(s grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(s)
		var send []any
		switch method {
		case "/runtime.v1.RuntimeService/StreamPodSandboxes":
			for i := 0; i < len(sandboxes); i += 7 {
				send = append(send, &runtimeapi.StreamPodSandboxesResponse{PodSandboxes: sandboxes[i:min(i+7, len(sandboxes))]})
			}
		case "/runtime.v1.RuntimeService/StreamContainers":
			for i := 0; i < len(containers); i += 7 {
				send = append(send, &runtimeapi.StreamContainersResponse{Containers: containers[i:min(i+7, len(containers))]})
			}
		default:
			return status.Error(codes.Unimplemented, method)
		}
		for i, message := range send {
			if i == batches {
				return status.Error(codes.Internal, "broken off")
			}
			if err := s.SendMsg(message); err != nil {
				return err
			}
		}
		return nil
	}
}

// A streamed listing says what the whole one does. One that breaks off is an error, and not a node with fewer pods.
func TestListingsAreStreamedWhereTheRuntimeCan(t *testing.T) {
	sandboxes, containers := node(20)
	want, err := asProtobufHasIt(wire(t, sandboxes, containers))
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t)
	s.stream = streams(sandboxes, containers, -1)
	c := s.start(t).dial(t)
	var snap podmill.Snapshot
	for range 2 {
		if err := c.ListPods(t.Context(), &snap); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, snap.Items); diff != "" {
			t.Fatalf("(-want +got)\n%s", diff)
		}
	}
	if n := s.called("ListPodSandbox") + s.called("ListContainers"); n != 0 {
		t.Errorf("%d whole lists were asked for", n)
	}
	for batches := range 3 {
		s.stream = streams(sandboxes, containers, batches)
		if err := c.ListPods(t.Context(), &snap); status.Code(err) != codes.Internal || errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("broken off after %d messages: %v", batches, err)
		}
	}
}

// A runtime that streams nothing is asked once for a stream of each kind at most, and again when it is another one.
func TestARuntimeThatStreamsNoListsIsAskedOncePerConnection(t *testing.T) {
	sandboxes, containers := node(3)
	s := newServer(t).on("ListPodSandbox", says(&runtimeapi.ListPodSandboxResponse{Items: sandboxes})).
		on("ListContainers", says(&runtimeapi.ListContainersResponse{Containers: containers}))
	asked := 0
	s.stream = func(grpc.ServerStream) error {
		asked++
		return status.Error(codes.Unimplemented, "unknown method StreamPodSandboxes for service runtime.v1.RuntimeService")
	}
	c := s.start(t).dial(t)
	var snap podmill.Snapshot
	for range 3 {
		if err := c.ListPods(t.Context(), &snap); err != nil || len(snap.Items) != 9 {
			t.Fatalf("%d items, %v", len(snap.Items), err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times for a stream, want 1", asked)
	}
	s.stop()
	s.stream = streams(sandboxes, containers[:1], -1)
	s.start(t)
	for c.ListPods(t.Context(), &snap) != nil { // until it is connected again
	}
	if len(snap.Items) != 4 {
		t.Errorf("%d items, want the 4 that are streamed", len(snap.Items))
	}
}

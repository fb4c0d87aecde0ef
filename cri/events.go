package cri

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill"
)

// StreamEvents passes on whose events the runtime tells of. A runtime that tells of none is [errors.ErrUnsupported]. The stream is read as
// fast as it comes: a reader that is slow holds up containerd itself.
func (c *Client) StreamEvents(ctx context.Context, connected func(), on func(podmill.RuntimeEvent)) error {
	o := op{method: "GetContainerEvents"}
	streaming, cancel := context.WithCancel(ctx)
	defer cancel()
	began := time.Now()
	stream, err := c.runtime.GetContainerEvents(streaming, &runtimeapi.GetEventsRequest{})
	if err != nil {
		err = o.failed(ctx, streaming, err)
		c.called(ctx, o, began, err)
		return err
	}
	var broken error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		broken = receive(stream, on)
	}()
	// The stream says nothing before its first event, not even that there is one. A call behind it, on the same connection, is answered
	// when the runtime has got the request for events or refused it; a listing from then on misses nothing that no event tells of.
	if _, err := call(ctx, c, op{method: "Version", timeout: c.opts.timeout}, c.runtime.Version, &runtimeapi.VersionRequest{}); err != nil {
		cancel()
		<-ended
		return err
	}
	select {
	case <-ended:
	default:
		connected()
		<-ended
	}
	err = o.failed(ctx, streaming, broken)
	c.called(ctx, o, began, err)
	return err
}

// receive passes on events until the stream breaks, and returns why.
func receive(stream runtimeapi.RuntimeService_GetContainerEventsClient, on func(podmill.RuntimeEvent)) error {
	pods := owners{}
	for {
		event, err := stream.Recv()
		if err != nil {
			return err
		}
		if uid := pods.of(event); uid != "" {
			on(podmill.RuntimeEvent{Pod: uid, ID: event.GetContainerId(), State: reached(event.GetContainerEventType())})
		}
	}
}

// reached is the state that the subject of an event has come to.
func reached(event runtimeapi.ContainerEventType) podmill.State {
	switch event {
	case runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT:
		return podmill.StateCreated
	case runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT:
		return podmill.StateRunning
	case runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT:
		return podmill.StateExited
	default:
		return podmill.StateUnknown
	}
}

// owners knows whose the sandboxes are that events told of: the event of one that has gone may not say. It holds sandboxes that are there.
type owners map[string]types.UID

// of returns whose event it is, empty if nothing says.
func (o owners) of(event *runtimeapi.ContainerEventResponse) types.UID {
	sandbox := event.GetPodSandboxStatus()
	id, uid := sandbox.GetId(), types.UID(sandbox.GetLabels()[podmill.LabelPodUID])
	for _, c := range event.GetContainersStatuses() {
		if uid == "" {
			uid = types.UID(c.GetLabels()[podmill.LabelPodUID])
		}
	}
	if uid == "" {
		uid = o[event.GetContainerId()]
	}
	if event.GetContainerEventType() == runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT {
		delete(o, event.GetContainerId())
	} else if id != "" && uid != "" {
		o[id] = uid
	}
	return uid
}

package cri

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill"
)

// ListPods lists all sandboxes and containers that belong to a pod, ordered by ID. A runtime that can is asked to stream them: one message has
// a bound, and a node with many dead containers passes it.
func (c *Client) ListPods(ctx context.Context, snap *podmill.Snapshot) error {
	l := begin(snap)
	err := c.list(ctx, "StreamPodSandboxes", "ListPodSandbox", l, sandboxLayout())
	if err == nil {
		err = c.list(ctx, "StreamContainers", "ListContainers", l, containerLayout())
	}
	l.end(err == nil)
	return err
}

// list reads the streamed listing or, from a runtime that has none, the whole one. Both ask with an empty message, and both answer with messages of
// items. That there is no stream is forgotten with the connection: another runtime may be behind the next.
func (c *Client) list(ctx context.Context, streamed, whole string, l *listing, as layout) error {
	reply := reading(func(message []byte) error { return readItems(message, as, l.add) })
	if connection := c.connections.Load(); c.listsWhole.Load() != connection {
		err := c.listBy(ctx, streamed, reply, c.stream)
		if !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
		c.listsWhole.Store(connection)
	}
	return c.listBy(ctx, whole, reply, c.conn.Invoke)
}

func (c *Client) listBy(ctx context.Context, method string, reply reading, invoke func(context.Context, string, any, any, ...grpc.CallOption) error) error {
	_, err := call(ctx, c, op{method: method, timeout: c.opts.timeout}, func(ctx context.Context, nothing *runtimeapi.ListContainersRequest, _ ...grpc.CallOption) (any, error) {
		return nil, invoke(ctx, "/runtime.v1.RuntimeService/"+method, nothing, reply, grpc.ForceCodecV2(newReadingCodec()))
	}, &runtimeapi.ListContainersRequest{})
	return err
}

// stream makes a call that is answered by a stream, and has each message read.
func (c *Client) stream(ctx context.Context, method string, request, reply any, opts ...grpc.CallOption) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method, opts...)
	if err == nil {
		err = stream.SendMsg(request)
	}
	if err == nil {
		err = stream.CloseSend()
	}
	for err == nil {
		err = stream.RecvMsg(reply)
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// listing fills a snapshot anew, and takes from its old items what did not change, so that that costs no memory. The runtime lists in any order,
// and items are in that of their IDs: one that was there before has its place already. So a listing without changes need not be sorted.
type listing struct {
	snap *podmill.Snapshot
	old  []podmill.Item // behind which are as many places for the same in the new listing, and then what is new
}

func begin(snap *podmill.Snapshot) *listing {
	n := len(snap.Items)
	snap.Items = slices.Grow(snap.Items, n)[:2*n]
	clear(snap.Items[n:])
	return &listing{snap: snap, old: snap.Items[:n]}
}

// add takes an item. What belongs to no pod is somebody else's.
func (l *listing) add(r *raw, as layout) {
	if len(r.uid) == 0 {
		return
	}
	var old podmill.Item
	i, found := slices.BinarySearchFunc(l.old, r.id, compareID)
	if found {
		old = l.old[i]
	}
	item := podmill.Item{ID: keep(old.ID, r.id), Container: keep(old.Container, r.container), Attempt: r.attempt, State: as.stateOf(r.state)}
	item.Pod = podmill.PodRef{UID: keep(old.Pod.UID, r.uid), Namespace: keep(old.Pod.Namespace, r.namespace), Name: keep(old.Pod.Name, r.name)}
	if found {
		l.snap.Items[len(l.old)+i] = item
		return
	}
	l.snap.Items = append(l.snap.Items, item)
}

// end moves the new items to the place of the old ones, or takes them back.
func (l *listing) end(good bool) {
	kept := len(l.old)
	if good {
		fresh := l.snap.Items[len(l.old):]
		if len(fresh) > len(l.old) || slices.ContainsFunc(fresh, unlisted) {
			fresh = slices.DeleteFunc(fresh, unlisted)
			slices.SortFunc(fresh, func(a, b podmill.Item) int { return cmp.Compare(a.ID, b.ID) })
			fresh = slices.CompactFunc(fresh, func(a, b podmill.Item) bool { return a.ID == b.ID }) // each was true at some moment
		}
		kept = copy(l.snap.Items, fresh)
	}
	clear(l.snap.Items[kept:])
	l.snap.Items = l.snap.Items[:kept]
}

// unlisted says of a place that what had it was not listed any more.
func unlisted(item podmill.Item) bool { return item.Pod.UID == "" }

// compareID compares without making a string of the ID.
func compareID(item podmill.Item, id []byte) int {
	switch {
	case item.ID < string(id):
		return -1
	case item.ID > string(id):
		return 1
	default:
		return 0
	}
}

// keep returns the old string if it is what is read, else a new one.
func keep[S ~string](old S, read []byte) S {
	if string(old) == string(read) {
		return old
	}
	return S(read)
}

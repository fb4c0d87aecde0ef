package cri

import (
	"cmp"
	"context"
	"slices"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill"
)

// ListPods lists all sandboxes and containers that belong to a pod, ordered by ID.
func (c *Client) ListPods(ctx context.Context, snap *podmill.Snapshot) error {
	l := begin(snap)
	err := c.list(ctx, "ListPodSandbox", &runtimeapi.ListPodSandboxRequest{}, l, sandboxLayout())
	if err == nil {
		err = c.list(ctx, "ListContainers", &runtimeapi.ListContainersRequest{}, l, containerLayout())
	}
	l.end(err == nil)
	return err
}

func (c *Client) list(ctx context.Context, method string, request any, into *listing, as layout) error {
	reply := reading(func(message []byte) error { return readItems(message, as, into.add) })
	_, err := call(ctx, c, op{method: method, timeout: c.opts.timeout}, func(ctx context.Context, request any, _ ...grpc.CallOption) (any, error) {
		return nil, c.conn.Invoke(ctx, "/runtime.v1.RuntimeService/"+method, request, reply, grpc.ForceCodecV2(newReadingCodec()))
	}, request)
	return err
}

// listing fills a snapshot with new items behind its old ones, from which it takes what did not change, so that that costs no memory.
// The runtime lists in any order: old items are found by their ID.
type listing struct {
	snap *podmill.Snapshot
	old  []podmill.Item
}

func begin(snap *podmill.Snapshot) *listing {
	return &listing{snap: snap, old: snap.Items}
}

// add appends an item. What belongs to no pod is somebody else's.
func (l *listing) add(r *raw, as layout) {
	if len(r.uid) == 0 {
		return
	}
	var old podmill.Item
	if i, found := slices.BinarySearchFunc(l.old, r.id, compareID); found {
		old = l.old[i]
	}
	item := podmill.Item{ID: keep(old.ID, r.id), Container: keep(old.Container, r.container), Attempt: r.attempt, State: as.stateOf(r.state)}
	item.Pod = podmill.PodRef{UID: keep(old.Pod.UID, r.uid), Namespace: keep(old.Pod.Namespace, r.namespace), Name: keep(old.Pod.Name, r.name)}
	l.snap.Items = append(l.snap.Items, item)
}

// end moves the new items to the place of the old ones, or takes them back.
func (l *listing) end(good bool) {
	kept := len(l.old)
	if good {
		fresh := l.snap.Items[len(l.old):]
		slices.SortFunc(fresh, func(a, b podmill.Item) int { return cmp.Compare(a.ID, b.ID) })
		kept = copy(l.snap.Items, fresh)
	}
	clear(l.snap.Items[kept:])
	l.snap.Items = l.snap.Items[:kept]
}

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

package cri

import (
	"cmp"
	"context"
	"slices"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill"
)

// ListPods lists all sandboxes and containers that belong to a pod, ordered by ID.
func (c *Client) ListPods(ctx context.Context, snap *podmill.Snapshot) error {
	sandboxes, err := call(ctx, c, op{method: "ListPodSandbox", timeout: c.opts.timeout}, c.runtime.ListPodSandbox, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		return err
	}
	containers, err := call(ctx, c, op{method: "ListContainers", timeout: c.opts.timeout}, c.runtime.ListContainers, &runtimeapi.ListContainersRequest{})
	if err != nil {
		return err
	}
	l := begin(snap)
	for _, s := range sandboxes.GetItems() {
		l.add(sandboxItem(s))
	}
	for _, c := range containers.GetContainers() {
		l.add(containerItem(c))
	}
	l.end()
	return nil
}

func sandboxItem(s *runtimeapi.PodSandbox) podmill.Item {
	item := podmill.Item{Pod: podOf(s.GetLabels()), ID: s.GetId(), Attempt: s.GetMetadata().GetAttempt()}
	if s != nil { // what says nothing is not ready by mistake of a zero value
		item.State = sandboxState(s.GetState())
	}
	return item
}

func containerItem(c *runtimeapi.Container) podmill.Item {
	item := podmill.Item{
		Pod: podOf(c.GetLabels()), ID: c.GetId(), Container: c.GetMetadata().GetName(), Attempt: c.GetMetadata().GetAttempt(),
	}
	if c != nil {
		item.State = containerState(c.GetState())
	}
	return item
}

// listing fills a snapshot with new items behind its old ones, from which it takes the strings that did not change: what keeps a
// snapshot keeps no message. The runtime lists in any order, so that old items are found by their ID.
type listing struct {
	snap *podmill.Snapshot
	old  []podmill.Item
}

func begin(snap *podmill.Snapshot) *listing {
	return &listing{snap: snap, old: snap.Items}
}

// add appends an item. What belongs to no pod is somebody else's.
func (l *listing) add(item podmill.Item) {
	if item.Pod.UID == "" {
		return
	}
	if i, found := slices.BinarySearchFunc(l.old, item.ID, compareID); found {
		old := &l.old[i]
		item.ID = old.ID
		keep(&item.Container, old.Container)
		keep(&item.Pod.UID, old.Pod.UID)
		keep(&item.Pod.Namespace, old.Pod.Namespace)
		keep(&item.Pod.Name, old.Pod.Name)
	}
	l.snap.Items = append(l.snap.Items, item)
}

// end moves the new items to the place of the old ones.
func (l *listing) end() {
	fresh := l.snap.Items[len(l.old):]
	slices.SortFunc(fresh, func(a, b podmill.Item) int { return cmp.Compare(a.ID, b.ID) })
	n := copy(l.snap.Items, fresh)
	clear(l.snap.Items[n:])
	l.snap.Items = l.snap.Items[:n]
}

func compareID(item podmill.Item, id string) int { return cmp.Compare(item.ID, id) }

func keep[S ~string](s *S, old S) {
	if *s == old {
		*s = old
	}
}

package cri

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill"
)

// inspections is how many status calls for one pod are under way at a time.
const inspections = 4

// ListPods lists all sandboxes and containers that belong to a pod.
func (c *Client) ListPods(ctx context.Context, snap *podmill.Snapshot) error {
	sandboxes, err := call(ctx, c, "ListPodSandbox", c.opts.timeout, c.runtime.ListPodSandbox, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		return err
	}
	containers, err := call(ctx, c, "ListContainers", c.opts.timeout, c.runtime.ListContainers, &runtimeapi.ListContainersRequest{})
	if err != nil {
		return err
	}
	l := listing{old: snap.Items[:cap(snap.Items)], items: snap.Items[:0]}
	for _, s := range sandboxes.GetItems() {
		m := s.GetMetadata()
		l.add(podmill.Item{
			Pod: podmill.PodRef{UID: types.UID(m.GetUid()), Namespace: m.GetNamespace(), Name: m.GetName()},
			ID:  s.GetId(), Attempt: m.GetAttempt(), State: sandboxState(s.GetState()),
		})
	}
	for _, s := range containers.GetContainers() {
		m := s.GetMetadata()
		l.add(podmill.Item{
			Pod: podOf(s.GetLabels()), ID: s.GetId(), Container: m.GetName(), Attempt: m.GetAttempt(), State: containerState(s.GetState()),
		})
	}
	snap.Items = l.items
	return nil
}

// listing fills a snapshot in place.
type listing struct {
	old, items []podmill.Item
}

// add appends an item. Where the slot holds the same strings already they are kept, so that those of the message can be
// collected. What belongs to no pod is somebody else's.
func (l *listing) add(item podmill.Item) {
	if item.Pod.UID == "" {
		return
	}
	if i := len(l.items); i < len(l.old) {
		old := &l.old[i]
		keep(&item.ID, old.ID)
		keep(&item.Container, old.Container)
		keep((*string)(&item.Pod.UID), string(old.Pod.UID))
		keep(&item.Pod.Namespace, old.Pod.Namespace)
		keep(&item.Pod.Name, old.Pod.Name)
	}
	l.items = append(l.items, item)
}

func keep(s *string, old string) {
	if *s == old {
		*s = old
	}
}

// InspectPod inspects everything under a pod's UID.
func (c *Client) InspectPod(ctx context.Context, uid types.UID) (*podmill.RuntimePod, error) {
	selector := map[string]string{podmill.LabelPodUID: string(uid)}
	sandboxes, err := call(ctx, c, "ListPodSandbox", c.opts.timeout, c.runtime.ListPodSandbox,
		&runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{LabelSelector: selector}})
	if err != nil {
		return nil, fmt.Errorf("inspect pod %s: %w", uid, err)
	}
	containers, err := call(ctx, c, "ListContainers", c.opts.timeout, c.runtime.ListContainers,
		&runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{LabelSelector: selector}})
	if err != nil {
		return nil, fmt.Errorf("inspect pod %s: %w", uid, err)
	}
	pod := &podmill.RuntimePod{PodRef: podmill.PodRef{UID: uid}}
	if pod.Sandboxes, err = each(ctx, sandboxes.GetItems(), c.inspectSandbox); err != nil {
		return nil, fmt.Errorf("inspect pod %s: %w", uid, err)
	}
	if pod.Containers, err = each(ctx, containers.GetContainers(), c.inspectContainer); err != nil {
		return nil, fmt.Errorf("inspect pod %s: %w", uid, err)
	}
	slices.SortStableFunc(pod.Sandboxes, func(a, b podmill.Sandbox) int { return cmp.Compare(b.Attempt, a.Attempt) })
	slices.SortStableFunc(pod.Containers, func(a, b podmill.Container) int { return cmp.Compare(b.Attempt, a.Attempt) })
	for _, s := range pod.Sandboxes {
		pod.PodRef = podOf(s.Labels)
	}
	for _, c := range pod.Containers {
		pod.PodRef = podOf(c.Labels)
	}
	return pod, nil
}

// each inspects several things side by side, and leaves out what has vanished.
func each[L, O any](ctx context.Context, listed []L, inspect func(context.Context, L) (O, error)) ([]O, error) {
	if len(listed) == 0 {
		return nil, nil
	}
	results, found := make([]O, len(listed)), make([]bool, len(listed))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(inspections)
	for i := range listed {
		g.Go(func() error {
			var err error
			results[i], err = inspect(ctx, listed[i])
			if errors.Is(err, podmill.ErrNotFound) {
				return nil
			}
			found[i] = err == nil
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var out []O
	for i := range results {
		if found[i] {
			out = append(out, results[i])
		}
	}
	return out, nil
}

func (c *Client) inspectSandbox(ctx context.Context, s *runtimeapi.PodSandbox) (podmill.Sandbox, error) {
	r, err := call(ctx, c, "PodSandboxStatus", c.opts.timeout, c.runtime.PodSandboxStatus, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: s.GetId()})
	if err != nil {
		return podmill.Sandbox{}, err
	}
	return observedSandbox(r.GetStatus()), nil
}

func (c *Client) inspectContainer(ctx context.Context, s *runtimeapi.Container) (podmill.Container, error) {
	r, err := call(ctx, c, "ContainerStatus", c.opts.timeout, c.runtime.ContainerStatus, &runtimeapi.ContainerStatusRequest{ContainerId: s.GetId()})
	if err != nil {
		return podmill.Container{}, err
	}
	observed := observedContainer(r.GetStatus())
	observed.SandboxID = s.GetPodSandboxId()
	return observed, nil
}

package cri

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill"
)

// inspections is how many status calls for one pod are under way at a time.
const inspections = 4

// InspectPod inspects everything under a pod's UID: two listings side by side, then the statuses of what they found. (No runtime fills the
// containers' statuses of PodSandboxStatus.)
func (c *Client) InspectPod(ctx context.Context, uid types.UID) (*podmill.RuntimePod, error) {
	pod := &podmill.RuntimePod{PodRef: podmill.PodRef{UID: uid}}
	if uid == "" {
		return pod, nil // as a selector it means everything that has no such label
	}
	sandboxes, containers, err := c.find(ctx, uid)
	if err != nil {
		return nil, fmt.Errorf("inspect pod %s: %w", uid, err)
	}
	seenSandboxes, seenContainers := make([]*podmill.Sandbox, len(sandboxes)), make([]*podmill.Container, len(containers))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(inspections)
	for i, s := range sandboxes {
		pod.PodRef = named(pod.PodRef, s.GetLabels())
		g.Go(func() (err error) {
			seenSandboxes[i], err = c.inspectSandbox(ctx, s)
			return absent(err)
		})
	}
	for i, container := range containers {
		pod.PodRef = named(pod.PodRef, container.GetLabels())
		g.Go(func() (err error) {
			seenContainers[i], err = c.inspectContainer(ctx, container)
			return absent(err)
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("inspect pod %s: %w", pod.PodRef, err)
	}
	pod.Sandboxes, pod.Containers = there(seenSandboxes), there(seenContainers)
	slices.SortFunc(pod.Sandboxes, func(a, b podmill.Sandbox) int {
		return cmp.Or(cmp.Compare(b.Attempt, a.Attempt), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(pod.Containers, func(a, b podmill.Container) int {
		return cmp.Or(cmp.Compare(b.Attempt, a.Attempt), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return pod, nil
}

// find lists what there is of a pod.
func (c *Client) find(ctx context.Context, uid types.UID) (sandboxes []*runtimeapi.PodSandbox, containers []*runtimeapi.Container, err error) {
	selector := map[string]string{podmill.LabelPodUID: string(uid)}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		r, err := call(ctx, c, op{method: "ListPodSandbox", timeout: c.opts.timeout}, c.runtime.ListPodSandbox,
			&runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{LabelSelector: selector}})
		sandboxes = r.GetItems()
		return err
	})
	g.Go(func() error {
		r, err := call(ctx, c, op{method: "ListContainers", timeout: c.opts.timeout}, c.runtime.ListContainers,
			&runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{LabelSelector: selector}})
		containers = r.GetContainers()
		return err
	})
	err = g.Wait()
	return sandboxes, containers, err
}

// named completes a pod's reference by the labels of what is part of it.
func named(ref podmill.PodRef, labels map[string]string) podmill.PodRef {
	other := podOf(labels)
	ref.Namespace, ref.Name = cmp.Or(ref.Namespace, other.Namespace), cmp.Or(ref.Name, other.Name)
	return ref
}

// there leaves out what has vanished between two looks.
func there[T any](seen []*T) []T {
	var out []T
	for _, t := range seen {
		if t != nil {
			out = append(out, *t)
		}
	}
	return out
}

// InspectSandbox looks at one sandbox, by one call.
func (c *Client) InspectSandbox(ctx context.Context, id string) (*podmill.Sandbox, error) {
	return c.inspectSandbox(ctx, &runtimeapi.PodSandbox{Id: id})
}

func (c *Client) inspectSandbox(ctx context.Context, s *runtimeapi.PodSandbox) (*podmill.Sandbox, error) {
	r, err := call(ctx, c, op{"PodSandboxStatus", s.GetId(), c.opts.timeout}, c.runtime.PodSandboxStatus,
		&runtimeapi.PodSandboxStatusRequest{PodSandboxId: s.GetId()})
	if err != nil {
		return nil, err
	}
	if r.GetStatus() == nil {
		return nil, fmt.Errorf("sandbox %s: the runtime returned no status", s.GetId())
	}
	seen := observedSandbox(r.GetStatus())
	seen.ID = s.GetId() // it is what was asked for, whatever the answer calls it
	return &seen, nil
}

func (c *Client) inspectContainer(ctx context.Context, s *runtimeapi.Container) (*podmill.Container, error) {
	r, err := call(ctx, c, op{"ContainerStatus", s.GetId(), c.opts.timeout}, c.runtime.ContainerStatus,
		&runtimeapi.ContainerStatusRequest{ContainerId: s.GetId()})
	if err != nil {
		return nil, err
	}
	if r.GetStatus() == nil {
		return nil, fmt.Errorf("container %s: the runtime returned no status", s.GetId())
	}
	seen := observedContainer(r.GetStatus())
	seen.ID, seen.SandboxID = s.GetId(), s.GetPodSandboxId()
	return &seen, nil
}

package podmilltest

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// ListPods implements [podmill.Lister]. Pods are in the order in which they came.
func (r *Runtime) ListPods(ctx context.Context, snap *podmill.Snapshot) error {
	return r.call(ctx, OpListPods, "", func() error {
		snap.Items = snap.Items[:0]
		for _, p := range r.order {
			for _, s := range p.sandboxes {
				state := podmill.StateExited
				if s.seen.Ready {
					state = podmill.StateRunning
				}
				snap.Items = append(snap.Items, podmill.Item{Pod: p.PodRef, ID: s.seen.ID, Attempt: s.seen.Attempt, State: state})
			}
			for _, c := range p.containers {
				snap.Items = append(snap.Items, podmill.Item{
					Pod: p.PodRef, ID: c.seen.ID, Container: c.seen.Name, Attempt: c.seen.Attempt, State: c.seen.State,
				})
			}
		}
		return nil
	})
}

// InspectPod implements [podmill.Lister].
func (r *Runtime) InspectPod(ctx context.Context, uid types.UID) (*podmill.RuntimePod, error) {
	seen := &podmill.RuntimePod{PodRef: podmill.PodRef{UID: uid}}
	err := r.call(ctx, OpInspectPod, string(uid), func() error {
		p := r.pods[uid]
		if p == nil {
			return nil
		}
		seen.PodRef = p.PodRef
		for _, s := range p.sandboxes {
			seen.Sandboxes = append(seen.Sandboxes, s.look())
		}
		for _, c := range p.containers {
			copied := c.seen
			copied.Labels, copied.Annotations = maps.Clone(copied.Labels), maps.Clone(copied.Annotations)
			resources := *copied.Resources
			copied.Resources = &resources
			seen.Containers = append(seen.Containers, copied)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return seen, nil
}

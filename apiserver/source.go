package apiserver

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/lifecycle"
)

// AnnotationMirror is on a mirror pod, and holds the hash of the static pod that it shows.
const AnnotationMirror = "kubernetes.io/config.mirror"

// SourceOption changes a default of a [PodSource].
type SourceOption func(*PodSource)

// WithMirrors hands mirror pods over to who keeps them. Without it they are left out: they show pods that this node has from elsewhere.
func WithMirrors(mirrors *Mirrors) SourceOption { return func(s *PodSource) { s.mirrors = mirrors } }

// WithStatuses shows the sink what the API says of pods, so that it can restore what somebody else writes over a status.
func WithStatuses(sink *StatusSink) SourceOption { return func(s *PodSource) { s.statuses = sink } }

// PodSource is the [podmill.PodSource] of the pods that are bound to a node.
//
// It is synced when the API server has answered with the whole list as it is now, and stays so while the server is away: what was delivered goes
// on. After that only differences are delivered, also where the list had to be asked for anew.
type PodSource struct {
	client   *Client
	mirrors  *Mirrors
	statuses *StatusSink
}

var _ podmill.PodSource = (*PodSource)(nil)

// NewPodSource returns the source of the pods of the client's node.
func NewPodSource(client *Client, opts ...SourceOption) *PodSource {
	s := &PodSource{client: client}
	for _, opt := range opts {
		opt(s)
	}
	return s
}

// Name implements [podmill.PodSource].
func (s *PodSource) Name() string { return lifecycle.API }

// Run implements [podmill.PodSource]. It returns nil when ctx has ended, and goes on over every error before that.
func (s *PodSource) Run(ctx context.Context, deliver func(podmill.PodUpdate)) error {
	f := &feed{
		client: s.client.core, resource: "pods", selector: fields.OneTermEqualSelector("spec.nodeName", s.client.node).String(),
		example: &corev1.Pod{}, patience: podPatience,
		take: &delivery{mirrors: s.mirrors, statuses: s.statuses, deliver: func(u podmill.PodUpdate) {
			if ctx.Err() == nil {
				deliver(u)
			}
		}},
	}
	var restoring sync.WaitGroup
	defer restoring.Wait()
	if s.statuses != nil {
		restoring.Go(func() { s.statuses.restore(ctx) })
	}
	f.run(ctx)
	return nil
}

// delivery turns lists and changes of the API into those of a source.
type delivery struct {
	deliver  func(podmill.PodUpdate)
	mirrors  *Mirrors
	statuses *StatusSink
	pods     map[types.UID]*corev1.Pod // as they were delivered; nil before the first list
}

// set takes a whole list. The first is delivered as it is, of later ones what differs: versions that are known already are not replaced in memory.
func (d *delivery) set(objects []any) {
	var all, mirrors []*corev1.Pod
	for _, object := range objects {
		pod, ok := object.(*corev1.Pod)
		if !ok {
			continue
		}
		d.statuses.saw(pod)
		if isMirror(pod) {
			mirrors = append(mirrors, pod)
		} else {
			all = append(all, ours(pod))
		}
	}
	d.mirrors.set(mirrors)
	// Who was there first has the first claim on what the node has.
	slices.SortStableFunc(all, func(a, b *corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	if d.pods == nil {
		d.pods = make(map[types.UID]*corev1.Pod, len(all))
		for _, pod := range all {
			d.pods[pod.UID] = pod
		}
		d.deliver(podmill.PodUpdate{Op: podmill.ReplacePods, Pods: all})
		return
	}
	changed, gone := difference(d.pods, all)
	for _, pod := range gone { // first: another pod may have come by the name of one
		delete(d.pods, pod.UID)
	}
	for _, pod := range changed {
		d.pods[pod.UID] = pod
	}
	if len(gone) > 0 {
		d.deliver(podmill.PodUpdate{Op: podmill.DeletePods, Pods: gone})
	}
	if len(changed) > 0 {
		d.deliver(podmill.PodUpdate{Op: podmill.UpsertPods, Pods: changed})
	}
}

func (d *delivery) put(object any) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	d.statuses.saw(pod)
	if isMirror(pod) {
		d.mirrors.put(pod)
	} else {
		d.pods[pod.UID] = ours(pod)
		d.deliver(podmill.PodUpdate{Op: podmill.UpsertPods, Pods: []*corev1.Pod{pod}})
	}
}

func (d *delivery) drop(object any) {
	pod, ok := object.(*corev1.Pod)
	switch {
	case !ok:
	case isMirror(pod):
		d.mirrors.drop(pod)
	default:
		delete(d.pods, pod.UID)
		d.deliver(podmill.PodUpdate{Op: podmill.DeletePods, Pods: []*corev1.Pod{pod}})
	}
}

// difference returns what of a list is new or in another version than it is known in, and what is known and not in the list.
func difference(known map[types.UID]*corev1.Pod, list []*corev1.Pod) (changed, gone []*corev1.Pod) {
	listed := make(map[types.UID]bool, len(list))
	for _, pod := range list {
		listed[pod.UID] = true
		if before := known[pod.UID]; before == nil || before.ResourceVersion != pod.ResourceVersion {
			changed = append(changed, pod)
		}
	}
	for uid, pod := range known {
		if !listed[uid] {
			gone = append(gone, pod)
		}
	}
	return changed, gone
}

func isMirror(pod *corev1.Pod) bool {
	_, is := pod.Annotations[AnnotationMirror]
	return is
}

// ours says where a pod came from, whatever it says itself.
func ours(pod *corev1.Pod) *corev1.Pod {
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[podmill.AnnotationConfigSource] = lifecycle.API
	return pod
}

package apiserver

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// StatusSink is a [podmill.StatusSink] that writes the statuses of pods to the API server.
//
// A write is one PATCH of the status subresource with the pod's UID in it, without a GET before it. It says a node's whole part of the status, so
// that it is right whatever has happened to the status meanwhile, and no other part. A status that says what was written last is not written again; after a
// restart that is what the pod came with. What somebody else writes over it, as a cluster does with the readiness of a node's pods of which it has not
// heard for long, is written again while a source runs that shows the sink its pods ([WithStatuses]). What the server itself makes of it is left at that.
//
// Where the server knows no pod of the UID, UpdateStatus returns an error that is [podmill.ErrGone]; where a write met another one, one that is
// [podmill.ErrConflict]. FinishPod removes the pod from the API, at once and only that of its UID, if somebody has
// asked for its deletion.
type StatusSink struct {
	client *Client

	mu      sync.Mutex
	records map[types.UID]*written
	doubts  map[types.UID]*corev1.Pod // pods that say something else than was written
	doubted chan struct{}             // holds one token when there are any
}

// written is what was written of one pod.
type written struct {
	writing sync.Mutex // is held while it is written

	patch   []byte // the last one that was taken; nil if none was, or if that of a later one is not known
	kept    []byte // what the server made of it, where that is something else: an older one leaves out what it does not know
	version string // of the pod, with it
}

var _ podmill.StatusSink = (*StatusSink)(nil)

// NewStatusSink returns a sink of the pods of the client's node.
func NewStatusSink(client *Client) *StatusSink {
	return &StatusSink{client: client, records: map[types.UID]*written{}, doubts: map[types.UID]*corev1.Pod{}, doubted: make(chan struct{}, 1)}
}

// UpdateStatus implements [podmill.StatusSink].
func (s *StatusSink) UpdateStatus(ctx context.Context, pod *corev1.Pod, status *corev1.PodStatus) error {
	patch, err := statusPatch(pod.UID, status)
	if err == nil {
		r := s.record(pod)
		r.writing.Lock()
		defer r.writing.Unlock()
		if s.isWritten(r, patch) {
			return nil
		}
		err = s.write(ctx, pod, r, patch)
	}
	if err != nil {
		return fmt.Errorf("update status of pod %s: %w", podmill.RefOf(pod), err)
	}
	return nil
}

// record returns what was written of a pod: at first, what it came with.
func (s *StatusSink) record(pod *corev1.Pod) *written {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.records[pod.UID]
	if r == nil {
		r = &written{version: pod.ResourceVersion}
		if pod.Status.Phase != "" {
			r.patch, _ = statusPatch(pod.UID, &pod.Status) // what cannot be encoded is not what any patch says
		}
		s.records[pod.UID] = r
	}
	return r
}

func (s *StatusSink) isWritten(r *written, patch []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Equal(r.patch, patch)
}

// write has the server take a patch. Until it says that it has, nobody knows what is written. Callers hold r.writing.
func (s *StatusSink) write(ctx context.Context, pod *corev1.Pod, r *written, patch []byte) error {
	shown := &corev1.Pod{}
	err := s.client.core.Patch(types.StrategicMergePatchType).Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("status").
		Body(patch).Do(ctx).Into(shown)
	s.mu.Lock()
	switch {
	case err == nil:
		r.patch, r.kept, r.version = patch, nil, shown.ResourceVersion
		if kept, err := statusPatch(pod.UID, &shown.Status); err == nil && !bytes.Equal(kept, patch) {
			r.kept = kept
		}
	case !bytes.Equal(r.patch, patch):
		r.patch = nil // the new one may have been taken
	}
	s.mu.Unlock()
	if err != nil {
		return s.outcome(ctx, pod, err)
	}
	return nil
}

// outcome returns what an error of the API server means. A conflict may be one of UIDs; to know it takes a look at the pod.
func (s *StatusSink) outcome(ctx context.Context, pod *corev1.Pod, err error) error {
	if apierrors.IsConflict(err) || apierrors.IsInvalid(err) || apierrors.IsForbidden(err) { // the pod by that name may be another, or another node's
		if has, look := s.client.has(ctx, pod); look == nil && !has {
			return fmt.Errorf("%w: %w", podmill.ErrGone, err)
		}
	}
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: %w", podmill.ErrGone, err)
	case apierrors.IsConflict(err):
		return fmt.Errorf("%w: %w", podmill.ErrConflict, err)
	}
	return err
}

// FinishPod implements [podmill.StatusSink].
func (s *StatusSink) FinishPod(ctx context.Context, pod *corev1.Pod) error {
	if pod.DeletionTimestamp != nil {
		if err := s.client.remove(ctx, pod); err != nil {
			return fmt.Errorf("confirm deletion of pod %s: %w", podmill.RefOf(pod), err)
		}
	}
	s.forget(pod.UID)
	return nil
}

func (s *StatusSink) forget(pod types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.records, pod)
	delete(s.doubts, pod)
}

// remove takes the pod of that UID from the API, at once. One that is not there is removed, and so is one that is not this node's any more: it was removed by
// force, and another by its name is elsewhere, which this node may not touch.
func (c *Client) remove(ctx context.Context, pod *corev1.Pod) error {
	err := c.core.Delete().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).
		Body(&metav1.DeleteOptions{GracePeriodSeconds: new(int64), Preconditions: &metav1.Preconditions{UID: &pod.UID}}).
		Do(ctx).Error()
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err), apierrors.IsForbidden(err): // there may be another one of its name
		if has, look := c.has(ctx, pod); look == nil && !has {
			return nil
		}
	}
	return err
}

// has reports whether the server has the pod of that UID, bound to this node. It asks for a list, which a node may always have of its own pods; to get a pod
// that is gone, or another node's, is forbidden, and that says nothing.
func (c *Client) has(ctx context.Context, pod *corev1.Pod) (bool, error) {
	own := metav1.ListOptions{FieldSelector: fields.AndSelectors(
		fields.OneTermEqualSelector(metav1.ObjectNameField, pod.Name), fields.OneTermEqualSelector("spec.nodeName", c.node)).String()}
	found := &corev1.PodList{}
	err := c.core.Get().Namespace(pod.Namespace).Resource("pods").
		SpecificallyVersionedParams(&own, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"}).Do(ctx).Into(found)
	return slices.ContainsFunc(found.Items, func(p corev1.Pod) bool { return p.UID == pod.UID }), err
}

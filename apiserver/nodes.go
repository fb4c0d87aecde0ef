package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// leaseDuration is how long a lease says that a node lives, as the kubelet's; it is renewed every quarter of it.
const leaseDuration = 40 * time.Second

// Nodes keeps the Node object of the client's node, and its Lease in kube-node-lease. Package node says what is in them.
type Nodes struct {
	client *Client

	mu    sync.Mutex
	lease *coordinationv1.Lease // as it was last written
}

// NewNodes returns the client's node in the API.
func NewNodes(client *Client) *Nodes { return &Nodes{client: client} }

// Node returns the Node, and an error that is [podmill.ErrNotFound] if there is none.
func (n *Nodes) Node(ctx context.Context) (*corev1.Node, error) {
	node := &corev1.Node{}
	return node, n.outcome("get", n.client.core.Get().Resource("nodes").Name(n.client.node).Do(ctx).Into(node))
}

// WatchNode calls changed with the Node as it is now, whenever that is another version than before, and with nil when there is none any more, until ctx ends.
func (n *Nodes) WatchNode(ctx context.Context, changed func(*corev1.Node)) error {
	f := &feed{
		client: n.client.core, resource: "nodes", selector: fields.OneTermEqualSelector(metav1.ObjectNameField, n.client.node).String(),
		example: &corev1.Node{}, patience: podPatience, take: nodeListener(changed),
	}
	f.run(ctx)
	return ctx.Err()
}

// nodeListener is told of the one Node that is listed.
type nodeListener func(*corev1.Node)

func (l nodeListener) set(objects []any) {
	if len(objects) == 0 {
		l(nil)
	}
	for _, object := range objects {
		l.put(object)
	}
}

func (l nodeListener) put(object any) {
	if node, ok := object.(*corev1.Node); ok {
		l(node)
	}
}

func (l nodeListener) drop(any) { l(nil) }

// CreateNode creates the Node, with its status, and returns it as it is then. If there is one already the error is [podmill.ErrConflict].
func (n *Nodes) CreateNode(ctx context.Context, node *corev1.Node) (*corev1.Node, error) {
	created := &corev1.Node{}
	return created, n.outcome("create", n.client.core.Post().Resource("nodes").Body(node).Do(ctx).Into(created))
}

// LabelNode sets labels, and leaves others as they are.
func (n *Nodes) LabelNode(ctx context.Context, labels map[string]string) (*corev1.Node, error) {
	return n.patch(ctx, map[string]any{"metadata": map[string]any{"labels": labels}})
}

// UpdateNodeStatus makes a node's own part of the status what status says; what it does not say is removed. Conditions that it does not name stay, as do resources
// that somebody else advertises, and the volumes that a controller attaches.
func (n *Nodes) UpdateNodeStatus(ctx context.Context, status *corev1.NodeStatus) (*corev1.Node, error) {
	part, err := nodeStatusPatch(status)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", n.client.node, err)
	}
	return n.patch(ctx, map[string]any{"status": part}, "status")
}

func (n *Nodes) patch(ctx context.Context, change map[string]any, subresource ...string) (*corev1.Node, error) {
	patch, err := json.Marshal(change)
	if err != nil {
		return nil, fmt.Errorf("encode change of node %s: %w", n.client.node, err)
	}
	node := &corev1.Node{}
	return node, n.outcome("patch", n.client.core.Patch(types.StrategicMergePatchType).Resource("nodes").Name(n.client.node).
		SubResource(subresource...).Body(patch).Do(ctx).Into(node))
}

// RenewLease says that the node lives. The Lease belongs to the Node owner and goes with it. It is created if there is none; as long as nobody
// else writes it that is one request.
func (n *Nodes) RenewLease(ctx context.Context, owner *corev1.Node) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for range 2 { // once more when it turns out to be another than was thought
		if n.lease == nil {
			if err := n.findLease(ctx); err != nil {
				return n.outcome("get lease of", err)
			}
		}
		next := n.renewed(owner, time.Now())
		written := &coordinationv1.Lease{}
		request := n.client.leases.Put().Name(next.Name)
		if next.ResourceVersion == "" {
			request = n.client.leases.Post()
		}
		err := request.Namespace(next.Namespace).Resource("leases").Body(next).Do(ctx).Into(written)
		if err == nil {
			n.lease = written
			return nil
		}
		n.lease = nil
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) {
			return n.outcome("renew lease of", err)
		}
	}
	return n.outcome("renew lease of", fmt.Errorf("somebody else writes it: %w", podmill.ErrConflict))
}

// findLease notes the Lease that there is, or an empty one.
func (n *Nodes) findLease(ctx context.Context) error {
	lease := &coordinationv1.Lease{}
	err := n.client.leases.Get().Namespace(corev1.NamespaceNodeLease).Resource("leases").Name(n.client.node).Do(ctx).Into(lease)
	if err == nil || apierrors.IsNotFound(err) {
		n.lease = lease
		return nil
	}
	return err
}

func (n *Nodes) renewed(owner *corev1.Node, now time.Time) *coordinationv1.Lease {
	lease := n.lease.DeepCopy()
	lease.Namespace, lease.Name = corev1.NamespaceNodeLease, n.client.node
	lease.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: owner.Name, UID: owner.UID}}
	seconds, at := int32(leaseDuration/time.Second), metav1.NewMicroTime(now)
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &n.client.node, &seconds, &at
	return lease
}

func (n *Nodes) outcome(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err):
		err = fmt.Errorf("%w: %w", podmill.ErrNotFound, err)
	case apierrors.IsAlreadyExists(err):
		err = fmt.Errorf("%w: %w", podmill.ErrConflict, err)
	}
	return fmt.Errorf("%s node %s: %w", what, n.client.node, err)
}

package node

import (
	"context"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Watcher is an optional role of an [API]: it tells what others make of the Node. Without it a change is seen with the next status that is written, and that the Node
// was deleted as well.
type Watcher interface {
	// WatchNode calls changed with the Node as it is now, whenever that is another version than before, and with nil when there is none any more, until ctx ends.
	// changed returns at once.
	WatchNode(ctx context.Context, changed func(*corev1.Node)) error
}

// follow takes in what others make of the Node, once there is one.
func (n *Node) follow(ctx context.Context) {
	watcher, ok := n.api.(Watcher)
	if !ok {
		return
	}
	select {
	case <-n.registered:
	case <-ctx.Done():
		return
	}
	if err := watcher.WatchNode(ctx, n.heard); err != nil && ctx.Err() == nil {
		logr.FromContextOrDiscard(ctx).Error(err, "changes of the node by others are seen late", "node", n.name)
	}
}

// heard takes in a version of the Node. It may be one that is known already, or older than that.
func (n *Node) heard(node *corev1.Node) {
	if n.remember(node) {
		n.Look()
	}
}

// remember notes a version of the Node, nil if there is none, and reports whether that is news. Of a Node that is another than the one that is known nothing is
// believed: it may be that one's successor, to which labels and the Lease are owed, or its predecessor. It is looked for.
func (n *Node) remember(node *corev1.Node) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case node == nil:
	case n.known == nil || node.UID != n.known.UID:
		node = nil
	case !later(node, n.known):
		return false
	}
	n.known = node
	return true
}

// found notes the Node that was looked for, whatever was known before.
func (n *Node) found(node *corev1.Node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.known = node
}

// later reports whether a version comes after another, or whether that cannot be told.
func later(node, than *corev1.Node) bool {
	order, err := resourceversion.CompareResourceVersion(node.ResourceVersion, than.ResourceVersion)
	return err != nil || order > 0
}

package node

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podmill/podmill"
)

// API is where the Node and its Lease are kept. Calls about the Node come one after another, those about the Lease beside them. What is
// returned is the caller's. Where it is a [Watcher] too, what others make of the Node is known at once.
type API interface {
	// Node returns the Node, and an error that is [podmill.ErrNotFound] if there is none.
	Node(ctx context.Context) (*corev1.Node, error)
	// CreateNode creates the Node, with its status. If there is one already the error is [podmill.ErrConflict].
	CreateNode(ctx context.Context, node *corev1.Node) (*corev1.Node, error)
	// LabelNode sets labels, and leaves others as they are.
	LabelNode(ctx context.Context, labels map[string]string) (*corev1.Node, error)
	// UpdateNodeStatus writes a status; conditions and resources that it does not name stay, what else it does not say is removed. If there is no
	// Node the error is [podmill.ErrNotFound].
	UpdateNodeStatus(ctx context.Context, status *corev1.NodeStatus) (*corev1.Node, error)
	// RenewLease says that the node lives. The Lease belongs to owner.
	RenewLease(ctx context.Context, owner *corev1.Node) error
}

const (
	// callTimeout bounds one call of the API, and one look at the node.
	callTimeout = 10 * time.Second
	// unreadyLook is how often a node is looked at that says it is not ready.
	unreadyLook = time.Second
)

// Node keeps a Node object and its Lease.
type Node struct {
	api      API
	name     string
	observe  func(ctx context.Context) State
	labels   map[string]string
	taints   []corev1.Taint
	look     time.Duration
	report   time.Duration
	observer Observer
	wake     chan struct{}
	born     chan struct{} // holds one token when there is a Node that the Lease does not know

	first      sync.Once
	registered chan struct{} // closed when the Node was found or created for the first time

	mu    sync.Mutex
	known *corev1.Node // as it was last written, found or heard of; nil if it has to be looked for
}

// New returns a node of that name that is as observe says. observe is called from Run's goroutine. It returns soon, and once its context has ended, after 10 s, at
// once with what it knows: until then nobody is told that the node is not well.
func New(api API, name string, observe func(ctx context.Context) State, opts ...Option) *Node {
	n := &Node{
		api: api, name: name, observe: observe, look: 10 * time.Second, report: 5 * time.Minute,
		wake: make(chan struct{}, 1), born: make(chan struct{}, 1), registered: make(chan struct{}),
	}
	for _, opt := range opts {
		opt(n)
	}
	return n
}

// Look has the status looked at soon: something is otherwise than it was.
func (n *Node) Look() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// Known returns the Node as it was last found, written or heard of, nil where there is none. It is shared and read-only.
func (n *Node) Known() *corev1.Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.known
}

// Run keeps the Node until ctx ends. It returns nil.
func (n *Node) Run(ctx context.Context) error {
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { n.live(ctx) })
	beside.Go(func() { n.follow(ctx) })
	timer := time.NewTimer(n.look)
	defer timer.Stop()
	var last written
	for {
		if err := n.sync(ctx, &last); err != nil && ctx.Err() == nil {
			logr.FromContextOrDiscard(ctx).Error(err, "the node is not as its object says", "node", n.name)
		}
		timer.Reset(n.pause())
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-n.wake:
		}
	}
}

// pause is how long to wait for the next look: not long while the node is not ready, which somebody waits for.
func (n *Node) pause() time.Duration {
	if known := n.Known(); known != nil {
		if ready := condition(&known.Status, corev1.NodeReady); ready != nil && ready.Status != corev1.ConditionTrue {
			return min(n.look, unreadyLook)
		}
	}
	return n.look
}

// live renews the Lease, once there is a Node that it can belong to.
func (n *Node) live(ctx context.Context) {
	ticker := time.NewTicker(n.look)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.born:
		case <-ticker.C:
		}
		owner := n.Known()
		if owner == nil {
			continue
		}
		call, cancel := context.WithTimeout(ctx, callTimeout)
		err := n.api.RenewLease(call, owner)
		cancel()
		if ctx.Err() != nil {
			return
		}
		n.observer.renewed(err)
		if err != nil {
			logr.FromContextOrDiscard(ctx).Error(err, "the cluster is not told that the node lives", "node", n.name)
		}
	}
}

// written is the status that was written last.
type written struct {
	at   time.Time
	said *corev1.NodeStatus // as it was written
	kept *corev1.NodeStatus // what the server made of it: an older one leaves out what it does not know
}

// sync registers the node, or writes its status where there is a reason to. last is when that was done last.
func (n *Node) sync(ctx context.Context, last *written) error {
	looking, looked := context.WithTimeout(ctx, callTimeout)
	state := n.observe(looking)
	looked()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	known := n.Known()
	if known == nil {
		var err error
		if known, err = n.register(ctx, state); err != nil {
			return err
		}
		n.found(known)
		n.observer.registered(known)
		n.first.Do(func() { close(n.registered) })
		select {
		case n.born <- struct{}{}:
		default:
		}
		*last = written{} // whoever wrote it before, this is news
	}
	now := time.Now()
	next := Status(&known.Status, state, now)
	if now.Sub(last.at) < n.report && !last.lacks(&known.Status, next) {
		return nil
	}
	updated, err := n.api.UpdateNodeStatus(ctx, next)
	n.observer.reported(err)
	switch {
	case errors.Is(err, podmill.ErrNotFound):
		n.remember(nil)
		n.Look()
		return err
	case err != nil:
		return err
	}
	*last = written{at: now, said: next, kept: &updated.Status}
	if n.remember(updated); n.Known() == nil {
		n.Look() // it was another one
	}
	return nil
}

// lacks reports whether there is a reason to write what comes next, given what is known to be there: it is news, unless it was written already, and what is there is what
// the server made of it.
func (w *written) lacks(known, next *corev1.NodeStatus) bool {
	return news(known, next) && (w.said == nil || news(w.said, next) || news(w.kept, known))
}

// register finds or creates the Node.
func (n *Node) register(ctx context.Context, state State) (*corev1.Node, error) {
	found, err := n.api.Node(ctx)
	if errors.Is(err, podmill.ErrNotFound) {
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: n.labels}, Spec: corev1.NodeSpec{Taints: n.taints},
			Status: *Status(&corev1.NodeStatus{}, state, time.Now()),
		}
		return n.api.CreateNode(ctx, node)
	}
	if err != nil || n.labelled(found) {
		return found, err
	}
	return n.api.LabelNode(ctx, n.labels)
}

// labelled reports whether the Node has all labels that it should have.
func (n *Node) labelled(node *corev1.Node) bool {
	labels := maps.Clone(node.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, n.labels)
	return maps.Equal(labels, node.Labels)
}

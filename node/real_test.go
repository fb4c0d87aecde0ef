package node_test

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill/apiserver"
	"github.com/podmill/podmill/internal/testenv/testapi"
	"github.com/podmill/podmill/node"
)

// A node registers at a real API server, with a node's rights. Its labels are set and its taints are not forced on a Node that is there; others' labels and conditions stay. One that is deleted
// comes back as another, and the Lease is that one's.
func TestANodeAtARealServer(t *testing.T) {
	api := testapi.New(t)
	client, err := apiserver.NewClient(api.NodeConfig, api.Node)
	if err != nil {
		t.Fatal(err)
	}
	var owners = make(chan types.UID, 100)
	nodes := &told{Nodes: apiserver.NewNodes(client), owners: owners}
	run := func(opts ...node.Option) (stop func()) {
		ctx, cancel := context.WithCancel(context.Background())
		n := node.New(nodes, api.Node, well, append(opts, node.WithLookPeriod(50*time.Millisecond), node.WithReportPeriod(100*time.Millisecond))...)
		ended := make(chan error)
		go func() { ended <- n.Run(ctx) }()
		return func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
	get := func() *corev1.Node {
		found := &corev1.Node{}
		if !api.Get("nodes", api.Node, found) {
			return nil
		}
		return found
	}
	taint := corev1.Taint{Key: "example.com/new", Effect: corev1.TaintEffectNoSchedule}
	stop := run(node.WithLabels(map[string]string{"example.com/a": "1"}), node.WithTaints(taint))
	var first *corev1.Node
	api.Eventually("the node is registered", func() bool { first = get(); return first != nil })
	if first.Labels["example.com/a"] != "1" || !slices.ContainsFunc(first.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taint.Key }) {
		t.Errorf("labels %v, taints %v", first.Labels, first.Spec.Taints)
	}
	stop()

	// Somebody labels it, says something of it and lifts the taint; the agent is started with another label.
	api.Patch("nodes", api.Node, map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"example.com/other": "x", "example.com/a": "0"}}, "spec": map[string]any{"taints": nil},
	})
	api.Patch("nodes", api.Node, map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": "example.com/Fine", "status": "True"}}}}, "status")
	stop = run(node.WithLabels(map[string]string{"example.com/a": "2"}), node.WithTaints(taint))
	defer func() { stop() }()
	api.Eventually("the label is set", func() bool { return get().Labels["example.com/a"] == "2" })
	now := get()
	if now.UID != first.UID || now.Labels["example.com/other"] != "x" || len(now.Spec.Taints) != 0 {
		t.Errorf("labels %v, taints %v", now.Labels, now.Spec.Taints)
	}
	if !slices.ContainsFunc(now.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == "example.com/Fine" }) {
		t.Errorf("a condition of others is gone: %v", now.Status.Conditions)
	}

	api.Delete("nodes", api.Node, -1)
	var second *corev1.Node
	api.Eventually("the node is back", func() bool { second = get(); return second != nil && second.UID != first.UID })
	if second.Labels["example.com/a"] != "2" || !slices.ContainsFunc(second.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taint.Key }) {
		t.Errorf("labels %v, taints %v", second.Labels, second.Spec.Taints)
	}
	api.Eventually("the lease is the new node's", func() bool {
		for {
			select {
			case owner := <-owners:
				if owner == second.UID {
					return true
				}
			default:
				return false
			}
		}
	})
}

// told tells of whom the Lease was renewed.
type told struct {
	*apiserver.Nodes
	owners chan<- types.UID
}

func (n *told) RenewLease(ctx context.Context, owner *corev1.Node) error {
	err := n.Nodes.RenewLease(ctx, owner)
	if err == nil {
		select {
		case n.owners <- owner.UID:
		default: // nobody asks
		}
	}
	return err
}

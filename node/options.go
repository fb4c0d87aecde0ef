package node

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Option changes a default of a [Node].
type Option func(*Node)

// WithLabels are labels that the Node has, beside those that somebody else gives it.
func WithLabels(labels map[string]string) Option { return func(n *Node) { n.labels = labels } }

// WithTaints are taints that the Node is created with.
func WithTaints(taints ...corev1.Taint) Option { return func(n *Node) { n.taints = taints } }

// WithLookPeriod is how often the status is looked at and the Lease renewed; the default is 10 s.
func WithLookPeriod(d time.Duration) Option { return func(n *Node) { n.look = d } }

// WithReportPeriod is how long a status that says nothing new may stay unwritten; the default is 5 min.
func WithReportPeriod(d time.Duration) Option { return func(n *Node) { n.report = d } }

// WithObserver says who is told of what happens.
func WithObserver(observer Observer) Option { return func(n *Node) { n.observer = observer } }

// Observer is told of what a node writes. A nil func is not called; each returns at once.
type Observer struct {
	// Registered follows each time that the Node was found or created.
	Registered func(node *corev1.Node)
	// Reported follows each status that was written, or not.
	Reported func(err error)
	// Renewed follows each renewal of the Lease, or what kept it from it.
	Renewed func(err error)
}

func (o Observer) registered(node *corev1.Node) {
	if o.Registered != nil {
		o.Registered(node)
	}
}

func (o Observer) reported(err error) {
	if o.Reported != nil {
		o.Reported(err)
	}
}

func (o Observer) renewed(err error) {
	if o.Renewed != nil {
		o.Renewed(err)
	}
}

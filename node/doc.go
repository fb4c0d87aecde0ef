// Package node is a node's own entry in a cluster: it registers the Node, keeps its status true and its Lease alive.
//
// # Usage
//
//	n := node.New(api, "node1", observe, node.WithLabels(labels))
//	err := n.Run(ctx)
//
// observe says what the node is and how it does: addresses, capacity, conditions. [Status] makes the API's status of that, and is a pure function. [Ready], [Pressure] and,
// of what was measured, [Pressures] make conditions with the kubelet's words; [Images] and [State.SetRuntime] what a Node says of images and of its runtime.
//
// [Shutdown] ends the pods when the machine goes down, in the order of their priorities.
//
// # Guarantees
//
// A Node that is not there is created, with the labels and taints that it was given; of one that is there the labels are set, and taints
// stay as they are. Whoever deletes the Node gets it back, as a new one.
//
// The Lease is renewed every 10 s. The status is looked at every 10 s, every second while it is not ready, and whenever [Node.Look] is called, and written when it says
// something new, else every 5 min ([WithLookPeriod], [WithReportPeriod]): what a node with nothing to say costs is the lease. A condition's transition time
// moves only when its status does. A server that is away is tried again with every look. What others make of the Node is known at once where the API is a [Watcher].
//
// # What you implement
//
// [API] and, better, [Watcher], both of which apiserver.Nodes is, and the func that observes.
//
// # Concurrency
//
// Run runs once at a time; Look may be called at any time. Nothing is shared between two nodes: many of them run in one process.
//
// # Shutdown
//
// Run returns when its context has ended. The Node stays; that it does not live any more the cluster sees by its Lease.
//
// # Observability
//
// What cannot be written is in the log, and [Observer] is told of each write.
//
// # Testing
//
// The status is a pure function; the rest runs in virtual time.
package node

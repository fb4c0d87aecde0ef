// Package apiserver joins a node agent to a Kubernetes API server, piece by piece: pods come from it, their statuses go to it, and so do events and
// the node itself.
//
// # Usage
//
// A [Client] speaks in the name of one node. Each of the others needs nothing but it, and can be used without the rest:
//
//	client, err := apiserver.NewClient(config, "node1")
//	objects := apiserver.NewObjects(client)
//	pods := objects.Follow(apiserver.NewPodSource(client))
//	a, err := agent.New(runtime, root, []podmill.PodSource{pods},
//		agent.WithStatusSink(apiserver.NewStatusSink(client)),
//		agent.WithObjects(objects),
//		agent.WithEvents(apiserver.NewEventRecorder(client)))
//
// These are the pieces:
//
//   - [PodSource] delivers the pods that are bound to the node.
//   - [StatusSink] writes statuses, and confirms deletions.
//   - [Objects] has ConfigMaps, Secrets, Services, RuntimeClasses, claims and service account tokens, and tells of changes.
//   - [CSI] is what volume/csi asks of a cluster: it tells of drivers and attachments, and keeps the CSINode.
//   - [Mirrors] shows static pods.
//   - [EventRecorder] writes events.
//   - [Nodes] keeps the Node object and its Lease; package node says what is in them.
//
// examples/clusterkubelet is all of it together.
//
// # Guarantees
//
// All works with a node's rights: the authorizers Node and RBAC, and NodeRestriction.
//
// While the server is away nothing changes: what was delivered and read stays. Nothing is taken to be deleted because the server says nothing, and
// a list is never one from before. When it is back, which is seen within 45 s, only what differs is delivered. A watch that is open and silent for three minutes is asked anew.
//
// A write about a pod carries its UID, and never reaches another of the same name. An idle node asks nothing but that its watches go on, one for the pods,
// one for the Services, one for the Node and one for each object that its pods refer to.
//
// # What you implement
//
// Nothing.
//
// # Concurrency
//
// Everything may be called concurrently. Objects that are returned are shared and read-only.
//
// # Shutdown
//
// What has a Run works until its context ends, and Run returns when all that it started has ended. The recorder of events writes for two seconds more what still
// waits.
//
// # Observability
//
// Requests are client-go's, and so are their metrics. What goes wrong is in the context's log.
//
// # Testing
//
// What is decided is in pure functions: what a patch says, what of a list differs, what becomes of a mirror. The conversation with the server
// is tested in virtual time with a server in memory that goes away, stalls and forgets, and with a real one.
package apiserver

// Package agent is the default wiring of the blocks: a node agent in one call.
//
// # Usage
//
//	runtime, err := cri.Dial(ctx, "unix:///run/containerd/containerd.sock")
//	manifests := staticpod.NewDirectory("/etc/podmill/manifests", "node1")
//	a, err := agent.New(runtime, "/var/lib/podmill", []podmill.PodSource{manifests}, agent.WithObjects(manifests))
//	err = a.Run(ctx)
//
// # Guarantees
//
// Those of the blocks. Nothing is stopped that a source which has not been heard yet could want, and nothing when the agent ends, unless
// [WithStopPodsOnExit] says so.
//
// # What you implement
//
// Nothing: a runtime, sources, a sink and objects are there to choose from. An agent that wants other parts is composed of the blocks
// directly; agent.go shows how, and is all that this package adds.
//
// # Concurrency
//
// Methods may be called concurrently, before and during Run.
//
// # Shutdown
//
// When Run's context ends, the sources and the loop stop, then the syncs in flight, then the view of the runtime, and last the statuses, which are
// delivered for a bounded time. Run returns when all of that has ended.
//
// # Observability
//
// [Observers] holds the observers of all blocks; the logger is the context's.
package agent

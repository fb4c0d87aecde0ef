// Package checkpoint keeps on disk what a node needs to go on by itself: the pods that were last asked for, their ConfigMaps and Secrets, and their
// newest statuses. A node that boots with no way to its API server, or to whatever else its pods come from, starts them all the same, and what it has
// to tell is told when the server is back.
//
// # Usage
//
//	c, err := checkpoint.Open("/var/lib/podmill/checkpoint")
//	objects := c.Objects(api.Objects)
//	a, err := agent.New(runtime, root, []podmill.PodSource{c.Source(api.Pods)},
//		agent.WithObjects(objects), agent.WithStatusSink(c.Sink(api.Statuses)))
//
// Each of the three may be used without the others.
//
// # Guarantees
//
// Silence deletes nothing: pods that are kept are delivered as [podmill.UpsertPods], when their source has been silent for [WithPatience] or has failed,
// so that the source is synced only when it has really been heard. What it says then holds, and is kept in turn.
//
// A pod comes back with the newest status that its agent had, sent or not, unless its source knows of more restarts or of its end, and with the conditions that
// others have set. That a pod has ended is on disk before the sink is told. An object that there is no more is forgotten; one that cannot be asked for is the
// one that was kept, and so is a service account's token.
//
// Everything is in one file that only its owner may read. Changes that come together are written together, one write and one fsync, at most 50 ms
// after the first; after a crash the file says what was true at some moment between the last of them and the end. A Secret or token that is
// not needed any more, or is replaced by another, is not left in the file. A write that fails is tried again, and nobody waits for it.
//
// # What you implement
//
// Nothing: sources, sinks and objects are those of the contract.
//
// # Concurrency
//
// Everything may be called concurrently. One process uses a directory at a time.
//
// # Shutdown
//
// The file is written while a source runs, and once more when it ends. What comes when none runs is written at once.
//
// # Observability
//
// [Observer] is told of every write. Errors are in the log of the source's context.
//
// # Testing
//
// Needs a directory and nothing else, and runs in virtual time.
package checkpoint

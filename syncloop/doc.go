// Package syncloop is an agent's heart: it merges what the sources want, passes on everything that happens to the workers of the pods,
// and has cleaned up what nothing wants any more. It decides nothing about a pod.
//
// # Usage
//
//	inbox := syncloop.NewInbox()
//	eyes := pleg.New(runtime, inbox.Put) // and whoever else knows that a pod should be looked at
//	loop := syncloop.New(workers, inbox, []podmill.PodSource{files, api},
//		syncloop.WithHousekeeping(eyes.Pods, volumes, cgroups, statuses))
//	err := loop.Run(ctx)
//
// # Guarantees
//
// One goroutine owns the merged set and calls the workers; it waits for deliveries of the sources, keys of the [Inbox] and the time of housekeeping, and for
// nothing else. What a source wants starts, changes and stops whatever the other sources say, or do not say yet. A delivery
// that changes nothing which a node acts on reaches no worker. What an event costs does not depend on the number of pods.
//
// A pod that two sources want is the one of the source that was registered first, and that is said; when that source
// gives it up, the other's takes its place. A source that fails is run again, after one second and then ever later, up to half a minute; what
// it wanted stays wanted. One that returns nil has nothing more to say.
//
// Housekeeping looks at what the runtime holds. A pod that no source wants and no worker knows is an orphan, but only once each source
// that could want it is synced: the one that the annotation kubernetes.io/config.source of its sandbox or containers names, where
// that is registered, otherwise all. [WithOwn] leaves out what others run there.
//
// Then the cleaners come, one after another, when all sources are synced and the runtime has been listed; they keep every pod that is
// wanted, known to the workers or held by the runtime. They come at once when a pod has gone or a cleaner has failed, and otherwise every
// half minute: to read directories is most of what a node at rest costs. They run beside the loop, one round at a time: one that hangs holds
// up the next round of cleaning and nothing else. Without any source nothing is ever synced.
//
// # What you implement
//
// [Workers], which podworkers has, and a [Cleaner] for what you leave behind on a node. A [podmill.PodSource] is somewhere that pods come
// from; podmilltest.PodSourceTest proves one.
//
// # Concurrency
//
// All methods may be called concurrently. Each source has a goroutine of its own.
//
// # Shutdown
//
// Run returns when its context has ended and the sources and cleaners have returned.
//
// # Observability
//
// [Observer] is told of deliveries, conflicts, failing sources, orphans and rounds of housekeeping; Healthy of a loop that is stuck.
//
// # Testing
//
// Everything runs in virtual time. The merge of sources is a pure function.
package syncloop

// Package podworkers runs pods, each by itself: it calls a [Syncer] when a pod should be looked at, one call at a time for each
// pod, many pods at once, and leads every pod from its start to its end.
//
// # Usage
//
// Implement a [Syncer], say what is wanted, and run:
//
//	w := podworkers.New(syncer)
//	go w.Run(ctx)
//	w.Update(pod)                        // it is wanted, or has changed
//	w.Sync(pod.UID)                      // a container of it has exited: look again
//	<-w.Kill(pod.UID, podmill.Kill{})    // it has to end; now no container of it runs
//	w.Remove(pod.UID)                    // nobody wants it any more: end it, forget it
//
// # Guarantees
//
// A pod goes through waiting, syncing, terminating, terminated and finished, in this order and never back; [State] says what each
// means, and lifecycle.go how one follows from another.
//
// At most one sync of a pod is in flight. What is said meanwhile replaces what was said before it: the newest spec is synced next, and
// a thousand hints are one. A kill is not replaced by anything: it cancels the sync in flight, of several the
// shortest grace counts, and a deadline that comes nearer reaches a stop that is under way.
//
// A static pod (the annotation kubernetes.io/config.source is there and not "api") starts only when every pod of the same namespace
// and name that started before it has finished. Of several that wait the one that came last goes first. The API itself gives a
// name to one pod at a time, so its pods do not wait for each other.
//
// A UID that was removed and comes back starts afresh when its former self has finished: once, however often it went and came. So does
// one that the runtime holds as an orphan.
//
// A pod that has to end before it was started is terminated all the same: an agent that ran before may have left containers or
// files. Only SyncPod is never called for it. That is also the way of a pod which was Succeeded or Failed when it was first seen.
//
// A sync that fails is repeated with an exponential back-off, until one succeeds. A pod that is stuck delays no other.
// Time is measured by the monotonic clock: the wall clock may jump.
//
// # What you implement
//
// [Syncer], four methods. A provider whose back end looks after its pods by itself can leave SyncPod to create what is not
// there.
//
// # Concurrency
//
// All methods may be called from anywhere, a Syncer included, and return at once. A pod that nothing happens to costs no
// goroutine, no timer, and less than 512 bytes.
//
// # Shutdown
//
// When Run's context ends, the syncs in flight are cancelled and awaited. No pod is terminated for that: containers run on, and the
// next agent finds them. To end pods, call [Workers.Kill] and wait for its channels before ending Run.
//
// # Observability
//
// [Workers.Pods] shows every pod's state, [Observer] each step. Syncs that fail are logged to the logger in Run's context, which
// syncs find in theirs.
//
// # Testing
//
// There is no clock to fake: everything runs in the virtual time of testing/synctest.
package podworkers

// Package syncpod is an agent's hands: it makes what a runtime holds of a pod into what the pod's spec wants, and takes the pod away again
// when it has to end.
//
// # Usage
//
//	hands, err := syncpod.New(syncpod.Config{
//		Runtime: runtime, Cache: eyes, Sandboxes: sandboxes, Images: images, Reporter: reporter,
//	}, syncpod.WithDirectories("/var/lib/agent", "/var/log"), syncpod.WithVolumes(volumes), syncpod.WithWake(inbox.Put))
//
// A [Syncer] has the four syncs that pod workers call: SyncPod, SyncTerminatingPod, SyncTerminatingRuntimePod and SyncTerminatedPod.
// [Plan] can be used without it: it is the whole of what decides what to do next, as a pure function.
//
// # How it works
//
// Every sync goes round and round: look, plan, report, act, until there is nothing to do. So there is one way for everything: a first start, a
// restart of the agent in the middle of one, a lost reply and a container that was removed behind the agent's back are all the same, a look
// that finds something to do. [Plan] is the place to read what that is; bringup.go has the eight steps in which a pod starts.
//
// # Guarantees
//
// Init containers run in order, each to its success, in the sandbox that the pod has now; sidecars start in their turn, are restarted while
// the pod lives, and stop last. A container has at most one live instance: one whose state is unknown is stopped, and one that was created and never started is
// removed, before the next. An attempt is never used twice, whatever the runtime, the last status or the logs have forgotten. A container
// that has finished does not run again because it was collected. A pod that has finished gets no new sandbox.
//
// Images come while the sandbox does, each container's own way: one that takes long delays no other. If there can be no sandbox, pulls are called off, and
// then nothing is told of containers.
//
// With [WithProber], a sidecar lets the next container start when its startup probe has succeeded, and a container whose liveness or startup probe has
// failed is stopped, which counts as a failure whatever its exit code.
//
// A container that ends restarts by its policy: the first time at once, then after 10 s, 20 s and so on up to 5 min after its end, and at once again when it has
// run for 10 min. It is replaced when its image changes, and for nothing else but a resize that asks for it. Of dead instances the newest stays.
//
// activeDeadlineSeconds counts from the start time in the pod's last status, or else from its first sync, by the monotonic clock; it ends also a pod
// that still pulls.
//
// All containers restart when one ends as its rule RestartAllContainers says: plan_restart.go. Ephemeral containers are started once: plan_ephemeral.go.
//
// CPU and memory of containers that run are changed in place, or by a restart of the container where its resizePolicy wants that, when a pod's spec asks for other ones and
// [WithRoom] has room for them: resize.go. What was allocated is kept in the pod's directory.
//
// When a pod ends, containers have its grace period, counted against a deadline that survives a restart of the agent, and which only comes
// nearer. Containers stop before the sandbox, and the pod is reported as stopped when a look has shown that all have. What it leaves on disk is removed
// only as far as it is known; mounts are not crossed and links not followed.
//
// When the context of a sync ends, nothing is created or started any more. A sync that finds nothing to do asks the runtime nothing, and brings the pod's volumes up to date. With
// [WithWake] there is one when a volume wants it ([podmill.Volume].Renew), as for a token that ends.
//
// A postStart hook runs beside the sync that started its container, and until it has succeeded the container has not started: it is not told as
// running, not probed, and lets no other container start after it. A failure kills it; so does an agent that finds no record of how the hook ended. All
// preStop hooks begin as soon as the pod has to end, or with the kill of their own container; they have the grace and are cut when it is over, and
// the stop has two seconds at least. Hooks are delivered at least once, and any answer to an httpGet is a success, as with the kubelet.
//
// What is not supported is refused, never skipped. [Syncer.Features] says which fields are served; with [WithRefusal] nothing is started of a pod that has others.
//
// # What you implement
//
// A [podmill.ContainerRunner]; and [Cache], [Sandboxes], [Images] and [Reporter], for which this module has blocks. A back end
// whose runtime does all by itself can answer most of these with little.
//
// # Concurrency
//
// Calls for one pod come one after another, those for different pods concurrently.
//
// # Shutdown
//
// There are no goroutines but those of a call, which returns when they have; timers of back-offs end with their pods and do nothing but call
// the func of [WithWake].
//
// # Observability
//
// Events have the kubelet's reasons and words. [Observer] is told of every plan and of each of its steps.
//
// # Testing
//
// testdata/plan has the plan's rules as scripts, testdata/stories whole lives over podmilltest's runtime.
package syncpod

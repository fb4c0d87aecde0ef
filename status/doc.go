// Package status turns what a runtime holds into what a pod's status says, and delivers it.
//
// # Usage
//
// [Generate] is a pure function: the pod, what the runtime shows, what the agent knows beside it and the last status go in, the next
// status comes out. A [Manager] takes statuses with Set and brings them to a [podmill.StatusSink]; Report does both:
//
//	m := status.New(sink)
//	go m.Run(ctx)
//	m.Report(status.Input{Pod: pod, Seen: seen, Progress: progress})
//
// # Guarantees
//
// A phase never leaves Succeeded or Failed, and neither is told while a container may run. Restart counts never fall. A container that
// ended is reported with its real exit code; one whose end nobody saw with 137 and the reason ContainerStatusUnknown.
// Delivery is ordered within a pod and parallel over pods; the newest status wins; what changes nothing is not sent; a turn of
// readiness and the end of a pod go first.
//
// # What you implement
//
// A [podmill.StatusSink]. [FileSink] and [FuncSink] are here; podmilltest.StatusSinkTest proves another.
//
// # Concurrency
//
// Everything may be called concurrently. A pod costs no goroutine unless its status is being sent.
//
// # Shutdown
//
// When Run's context ends, what is still waiting is offered once more, for as long as [WithFlushTimeout] says.
//
// # Observability
//
// [Observer] is told of every delivery.
//
// # Testing
//
// Generate needs nothing; the manager runs in virtual time.
package status

// Package cri is a [podmill.Runtime] over CRI, the gRPC API of containerd (1.6 to 2.x) and CRI-O.
//
// # Usage
//
//	runtime, err := cri.Dial(ctx, "unix:///run/containerd/containerd.sock")
//	if err != nil {
//		return err // says what is wrong with the socket, and the cure
//	}
//	defer runtime.Close()
//
// A [Client] is every optional role of a runtime as well, from [podmill.EventStreamer] to [podmill.Resizer]; what the runtime behind it does not have answers
// [errors.ErrUnsupported].
//
// # Guarantees
//
// What is asked of the runtime is a pure function of the specs (sandbox_config.go, container_config.go). What CRI cannot say, and what the
// runtime would leave out without a word because it is too old, is a [podmill.ReasonError] that names the field.
//
// Only what the runtime itself calls not found is [podmill.ErrNotFound]. A runtime that timed out, fails or restarts is never taken to have
// said "absent"; while it cannot be reached, calls fail with [ErrUnavailable].
//
// Every call has a deadline ([WithTimeout]), but for pulls, commands and the event stream, which end with their contexts.
//
// No more is started at a time than there are processors for ([WithParallelStarts]): a burst of pods is through sooner, and most of them far sooner.
//
// Credentials appear in no error and no log, whatever the runtime and a registry say.
//
// # Concurrency
//
// A client may be used by many goroutines. It outlives a restart of the runtime: calls fail meanwhile, and succeed within seconds of its
// return. Who the runtime is and what it can do is asked anew then.
//
// # Shutdown
//
// Close ends calls that are under way.
//
// # Observability
//
// [Observer] is told of every call. At verbosity 4 every call is logged: its method, what it is about and how long it took.
//
// # Testing
//
// The package is tested against real containerd, 1.6 and 2.4, by podmilltest.RuntimeTest. Who tests something else takes podmilltest's
// in-memory runtime, which passes the same kit.
package cri

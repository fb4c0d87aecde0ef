// Package cri is a [podmill.Runtime] over CRI, the gRPC API of containerd and CRI-O.
//
// # Usage
//
//	runtime, err := cri.Dial(ctx, "unix:///run/containerd/containerd.sock")
//	defer runtime.Close()
//
// # Guarantees
//
// What is asked of the runtime is a pure function of the specs, in sandbox_config.go and container_config.go; what CRI cannot say, and what would be
// unsafe to leave out, is an error that names the field. Only what the runtime itself calls not found is [podmill.ErrNotFound]; a runtime that
// timed out, restarts or fails is never taken to have said "absent". Every call has a deadline. Credentials appear in no error and no log.
//
// # Concurrency
//
// A client may be used by many goroutines. It outlives a restart of the runtime: calls fail meanwhile, and succeed again.
//
// # Shutdown
//
// Close ends calls that are under way.
//
// # Observability
//
// [Observer] is told of every call.
//
// # Testing
//
// The package is tested against real containerd, 1.6 and 2.4; who tests something else takes podmilltest's in-memory runtime, which passes the
// same kit.
package cri

// Package sandbox runs the shared environment of a pod's containers: which sandbox to use, what it is made of, its start and end, and what is left
// of earlier ones.
//
// # Usage
//
//	m := sandbox.New(runtime, sandbox.WithEvents(events))
//	current, attempt, why := m.Choose(pod, seen)
//	spec, err := m.Spec(pod, attempt)
//	if current == nil {
//		err = m.Stop(ctx, seen) // why says what is wrong with those that are there
//		current, err = m.Run(ctx, spec)
//	}
//
// When the pod has ended, Stop and Remove; from time to time, [Manager.Collect] with all that the runtime holds.
//
// # Guarantees
//
// A port of the node belongs to one pod at a time; another one that wants it waits, with the reason NodePorts and that pod's name.
//
// The newest sandbox is the one of the highest attempt; no clock is asked. One that is ready and fits its pod is used again, also by another
// process. A pod gets a second sandbox only when none of those it has will do, and two are never made of one attempt.
// Stop and Remove may be repeated: what is not there is stopped and removed. Collect removes only what is dead, empty, replaced and
// not young.
//
// # What you implement
//
// [podmill.SandboxRunner] and InspectPod. A ready sandbox of a pod with a network of its own must have an address, else it is made anew.
//
// # Concurrency
//
// Everything may be called concurrently; what is called for one pod belongs in one goroutine. There are no others.
//
// # Shutdown
//
// Nothing runs by itself, so that there is nothing to end.
//
// # Observability
//
// Events have the kubelet's reasons: FailedCreatePodSandBox, FailedStatusPodSandBox, SandboxChanged, DNSConfigForming and MissingClusterDNS.
// [Observer] is told of every start and of every sandbox that Collect removes.
//
// # Testing
//
// Choose, the specs and the choice of what to collect are pure; see the package's own tests. podmilltest has a runtime in memory.
package sandbox

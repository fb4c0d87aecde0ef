// Package probe carries out the startup, liveness and readiness probes of running containers and says what follows from them.
//
// # Usage
//
//	probes := probe.New(runtime.Exec, inbox.Put, probe.WithGRPC(grpcprobe.Check), probe.WithEvents(events))
//	go probes.Run(ctx)
//	health := probes.Probe(pod, seen, false) // at every look at the pod
//
// Whoever looks after a pod calls Probe with what the runtime holds of it, and gets how its containers stand. When that
// changes, notify is called with the pod's UID, to look again. It needs no agent: seen is a plain struct, of which the IDs, names, states, start
// times and the sandbox's addresses are read.
//
// # Guarantees
//
// Probes mean what they mean to the kubelet: exec, httpGet, tcpSocket and gRPC, all thresholds, the API's defaults for what is zero. The delay
// counts from the container's start. A new container is not started before its startup probe said so, and not ready before its
// readiness probe said so; until it is started the other two wait, then they begin at once. When startup or liveness has failed, neither is
// probed until there is a new container. A probe that cannot be carried out (no such program, no such port) is tried three times, is told in an
// event, and changes nothing.
//
// After a restart of the agent a container is as started as it was last reported, and as ready, by its ID and if it began before. If ready it is
// probed at once; the other probes of what ran before begin at random within their period, so that they do not come in a burst.
//
// A probe takes at most its timeout, 64 KB of headers and 10 KB of the body or output; beyond the timeout it has failed, whatever it
// does. There is at most one under way for each probe. One that does not obey its context is given up and counts as failed in each period until it
// comes back. Hung ones, however many, delay others by no more than the 50 ms after which they make room. The result for a container that was replaced, or whose
// pod is gone, is dropped. A jump of the wall clock neither shortens nor lengthens anything that has begun.
//
// # What you implement
//
// [Exec], which obeys its context and bounds what it collects. Call Cleanup now and then, or pods that are gone stay in memory.
//
// # Concurrency
//
// One goroutine schedules, from one heap; each probe under way has one of its own, and one that is not has none. Everything may be called
// concurrently; Probe for one pod one call after another.
//
// # Shutdown
//
// Run returns when its context has ended and the probes under way have, or after a second. The verdicts stay.
//
// # Observability
//
// [Observer] gets each result, as the kubelet's prober_probe_total and prober_probe_duration_seconds count them. Events are Unhealthy and ProbeWarning, in the
// kubelet's words.
//
// # Testing
//
// Everything but sockets runs in virtual time, with an Exec of the test's own.
package probe

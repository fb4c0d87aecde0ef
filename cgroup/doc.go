// Package cgroup keeps the cgroups of pods: a pod's containers share one, which holds what the pod as a whole may use.
//
// # Usage
//
//	m, err := cgroup.New("/podmill", cgroup.WithDriver(cgroup.Cgroupfs))
//	parent, err := m.EnsureCgroup(ctx, pod) // goes into podmill.SandboxSpec.CgroupParent
//
// The tree is the kubelet's: <root>/kubepods holds guaranteed pods, and burstable and besteffort those of these classes. Under the systemd
// driver the same tree is made of slices. Both versions of cgroups are served.
//
// # Guarantees
//
// [WithMaxPIDs] bounds how many processes a pod has, and [WithMemoryReservation] keeps the memory that it requests from being taken away.
//
// [LimitsOf] is pure and gives what the kubelet would: shares of the requests, a CPU quota and a memory limit where every container has one.
// On v1 it is made in the hierarchies of CPU, memory and processes, in which it is limited; a runtime makes it in the others, above its containers'.
// A cgroup is removed from the bottom up in every hierarchy, with rmdir alone, never while a process is inside, and nothing outside of
// the root is touched. A pod that has what it needs costs one look.
//
// # Concurrency
//
// Methods may be called concurrently. No goroutine is started.
//
// # Testing
//
// The tests run on the machine's own hierarchies below a root of their own, and on cgroup v2 in an emulated machine where this one has v1.
package cgroup

// Package userns allots ranges of user and group IDs to pods that have a user namespace of their own (hostUsers: false, KEP-127).
//
// # Usage
//
//	ids, err := userns.New("/var/lib/agent")
//	mappings, err := ids.Allot(pod.UID) // goes into podmill.SandboxSpec.IDMappings
//
// When the pod has ended, Release.
//
// # Guarantees
//
// Every pod gets 65,536 IDs that no other pod has: root in one pod is nobody on the node and in every other pod. A pod keeps its range for life, also
// when the agent is restarted, for what its processes have written belongs to those IDs: the range is in the file pods/<uid>/userns, as the
// kubelet writes it, on disk before it is used, and what is on disk is known before a range is allotted. A file that cannot be
// read may hold any range, so that no new one is allotted while it is there.
//
// # What you implement
//
// Nothing.
//
// # Concurrency
//
// Methods may be called concurrently. There are no goroutines.
//
// # Testing
//
// Which range a pod gets is decided by a pure ledger; properties hold of any order of calls and restarts that no two pods share an ID.
package userns

// Package admission decides whether a pod that has been bound to a node can run there: a scheduler may have known less than the node does, and static pods
// never met one.
//
// # Usage
//
// [Check] is a pure function of the node, the pods that it has, and the pod:
//
//	if rejection := admission.Check(&node, others, pod); rejection != nil {
//		fmt.Println(rejection.Reason, rejection.Message)
//	}
//
// A [Gate] holds workers to it. It stands between them and whoever tells them what is wanted:
//
//	gate := admission.NewGate(workers, admission.Surroundings{
//		Node: node, Status: statuses.Status, Reject: reject, Retry: inbox.Put, Finish: finish,
//	})
//	loop := syncloop.New(gate, inbox, sources)
//
// # Guarantees
//
// A pod that does not fit is rejected with the kubelet's reason and message. It never reaches the workers, counts for nobody else, and stays rejected: what
// is free a moment later is for new pods. A pod that is over is not looked at, and does not count. A pod that runs already, as its status says after
// a restart of the agent, was admitted before: it counts, and is not looked at again.
//
// A pod that runs and asks for other CPU and memory ([Gate.Resize]) counts with what it has until there is room for what it wants.
//
// Checked are the operating system, CPU, memory, ephemeral storage, extended resources and the number of pods, node selector and affinity,
// the node's name, ports of the host, and taints with the effect NoExecute, from which static pods are exempt.
//
// A critical pod that lacks nothing but resources has others end, as [Preempt] chooses them, where [Surroundings] say how. It starts while they stop, and they count no
// more: that one of them is slow to stop, or cannot be stopped yet, does not keep it from running.
//
// # What you implement
//
// [Workers], which podworkers has, and the funcs that say what a rejection does.
//
// # Concurrency
//
// Check may be called concurrently. A gate's Known, Resize and Freed may be called concurrently with everything; its other methods come one after another.
//
// # Shutdown
//
// Nothing runs here.
//
// # Observability
//
// The funcs of [Surroundings] are told of each rejection.
//
// # Testing
//
// Tables, and a property for what is counted.
package admission

// Package podmill is the kubelet taken apart: the contract between the parts of a node agent.
//
// Each part is a package that stands on its own, and an agent is what you get by composing them. This package holds what passes between
// them: the world as a runtime shows it, what is asked of a runtime, and the interfaces that an agent's surroundings implement. It has no
// logic and starts nothing.
//
// # The contract
//
//   - [Runtime] is what an agent asks of a container runtime, in roles of a few methods each. Package cri is one, over CRI; a process, a VM or a
//     cloud that implements it is another. Extras such as [EventStreamer] are found with [As].
//   - [PodSource] is somewhere that pods are asked for: a directory, a URL, an API server.
//   - [StatusSink] is where their statuses go.
//   - [VolumeMounter] makes their volumes ready.
//
// What is wanted is said in Kubernetes' own words: [SandboxSpec] and [ContainerSpec] hold the API's Pod and Container, and beside them only what the
// agent had to resolve. What is observed are small plain structs: [RuntimePod], [Sandbox], [Container].
//
// # The blocks
//
//   - syncloop merges what the sources want, and routes every event to the workers.
//   - podworkers leads each pod from its start to its end, one sync at a time, many pods at once.
//   - syncpod looks, plans (a pure function) and acts; sandbox, image, volume, cgroup and userns are its tools, syncpod/env the environment of a container.
//   - probe asks containers how they are; its word gates sidecars, makes pods ready and ends what has failed.
//   - pleg knows what the runtime holds, and says when that changes.
//   - status makes a pod's status (a pure function) and delivers it.
//   - apiserver joins an agent to a cluster, node keeps its entry there, and admission turns away what it cannot run.
//   - staticpod, checkpoint, event, logs and server are an agent's surroundings; podspec fills in a Pod's defaults and validates it.
//   - podmilltest holds an in-memory runtime, faults, and kits that prove an implementation.
//
// Blocks never import each other; package agent joins them.
//
// # A first agent
//
// This is a node agent that runs the pods of a directory on containerd:
//
//	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt)
//
//	runtime, err := cri.Dial(ctx, "unix:///run/containerd/containerd.sock")
//	if err != nil {
//		log.Fatal(err)
//	}
//	manifests := staticpod.NewDirectory("/etc/podmill/manifests", "node1")
//	a, err := agent.New(runtime, "/var/lib/podmill", []podmill.PodSource{manifests}, agent.WithObjects(manifests))
//	if err != nil {
//		log.Fatal(err)
//	}
//	if err := a.Run(ctx); err != nil {
//		log.Fatal(err)
//	}
//
// Its containers run on when it ends, and are known again when it starts. examples/minikubelet is this with flags, cgroups and a window to look in;
// examples/inmemory runs anywhere.
package podmill

package podmill

// Keys of labels and annotations that sandboxes and containers carry in the runtime. They are the kubelet's own, so that crictl and
// other tools find their way, and they are what an agent reads after a restart.
const (
	LabelPodName       = "io.kubernetes.pod.name"
	LabelPodNamespace  = "io.kubernetes.pod.namespace"
	LabelPodUID        = "io.kubernetes.pod.uid"
	LabelContainerName = "io.kubernetes.container.name"
	// LabelOwner is on a sandbox and names the agent that made it. An agent takes down only pods of its own: a runtime may have other users.
	LabelOwner = "podmill.io/owner"

	// AnnotationContainerHash is a hash of those fields of a container whose change replaces it.
	AnnotationContainerHash            = "io.kubernetes.container.hash"
	AnnotationRestartCount             = "io.kubernetes.container.restartCount"
	AnnotationTerminationMessagePath   = "io.kubernetes.container.terminationMessagePath"
	AnnotationTerminationMessagePolicy = "io.kubernetes.container.terminationMessagePolicy"
	AnnotationPreStopHandler           = "io.kubernetes.container.preStopHandler"
	AnnotationContainerPorts           = "io.kubernetes.container.ports"
	// AnnotationContainerResources is what a container was started with, as JSON of its resources. The kubelet has it in a file.
	AnnotationContainerResources = "podmill.io/container.resources"
	// AnnotationPodTerminationGracePeriod is the pod's grace period in seconds: what a pod that is known from the runtime alone is
	// stopped with.
	AnnotationPodTerminationGracePeriod = "io.kubernetes.pod.terminationGracePeriod"
	// AnnotationPodDeletionGracePeriod is the grace period in seconds that a deletion asked for.
	AnnotationPodDeletionGracePeriod = "io.kubernetes.pod.deletionGracePeriod"

	// AnnotationConfigSource, AnnotationConfigHash and AnnotationConfigSeen are on a pod: where it came from, the identity
	// of its content there, and when it was first seen.
	AnnotationConfigSource = "kubernetes.io/config.source"
	AnnotationConfigHash   = "kubernetes.io/config.hash"
	AnnotationConfigSeen   = "kubernetes.io/config.seen"
)

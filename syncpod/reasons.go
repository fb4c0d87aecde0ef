package syncpod

// The kubelet's reasons: those of waiting containers, and those of events.
const (
	reasonCrashLoop    = "CrashLoopBackOff"
	reasonImagePull    = "ErrImagePull"
	reasonPullBackOff  = "ImagePullBackOff"
	reasonRestartAll   = "RestartingAllContainers"
	reasonConfigError  = "CreateContainerConfigError"
	reasonCreateError  = "CreateContainerError"
	reasonRunError     = "RunContainerError"
	reasonPostStart    = "PostStartHookError"
	reasonCreating     = "ContainerCreating"
	reasonInitializing = "PodInitializing"

	eventBackOff           = "BackOff"
	eventCreated           = "Created"
	eventDeadlineExceeded  = "DeadlineExceeded"
	eventFailed            = "Failed"
	eventFailedCgroup      = "FailedCreatePodContainer"
	eventFailedDirectories = "FailedToMakePodDataDirectories"
	eventFailedKillPod     = "FailedKillPod"
	eventFailedMount       = "FailedMount"
	eventFailedPostStart   = "FailedPostStartHook"
	eventFailedPreStop     = "FailedPreStopHook"
	eventFailedSandbox     = "FailedCreatePodSandBox"
	eventHookFallback      = "LifecycleHTTPFallback"
	eventKilling           = "Killing"
	eventNetworkNotReady   = "NetworkNotReady"
	eventResize            = "Resize" // followed by Deferred or Infeasible
	eventResizeCompleted   = "ResizeCompleted"
	eventResizeError       = "ResizeError"
	eventResizeStarted     = "ResizeStarted"
	eventStarted           = "Started"
)

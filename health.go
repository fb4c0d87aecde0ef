package podmill

// Health is how a running container is, as its probes say. A container without probes is started and ready.
type Health struct {
	// Started says that the startup probe has succeeded, or that there is none. Until then the other two wait.
	Started bool
	// Ready says that the container is started and its readiness probe, if there is one, succeeds.
	Ready bool
	// Failed is the probe that asks for the container's end, with the threshold passed: [ProbeStartup] or [ProbeLiveness]; empty if none does.
	Failed ProbeType
	// Message is what the probe that failed has said last.
	Message string
}

// ProbeType names one of a container's probes, as the kubelet's metrics and events do.
type ProbeType string

// The probes that a container can have.
const (
	ProbeStartup   ProbeType = "Startup"
	ProbeLiveness  ProbeType = "Liveness"
	ProbeReadiness ProbeType = "Readiness"
)

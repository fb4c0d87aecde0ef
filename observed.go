package podmill

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PodRef names a pod: the UID is its identity, namespace and name are what people call it.
type PodRef struct {
	UID       types.UID
	Namespace string
	Name      string
}

// RefOf returns the reference of a pod.
func RefOf(pod *corev1.Pod) PodRef {
	return PodRef{UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name}
}

// String returns namespace/name(uid), as the kubelet's logs have it.
func (r PodRef) String() string { return fmt.Sprintf("%s/%s(%s)", r.Namespace, r.Name, r.UID) }

// State is where a container is in its life. For a sandbox, ready is StateRunning and not ready is StateExited.
type State uint8

// The states of a container. The zero value is StateUnknown: the runtime could not say, which is never "absent" and
// never "exited".
const (
	StateUnknown State = iota
	StateCreated
	StateRunning
	StateExited
)

// String returns the state in lower case.
func (s State) String() string {
	switch s {
	case StateCreated:
		return "created"
	case StateRunning:
		return "running"
	case StateExited:
		return "exited"
	default:
		return "unknown"
	}
}

// Snapshot is a listing of all that a runtime holds. Its memory is re-used by the next listing.
type Snapshot struct {
	Items []Item
}

// Item is one line of a listing: a sandbox or, where Container is set, a container. It holds what may be compared to see
// that something has changed, and no more.
type Item struct {
	Pod       PodRef
	ID        string
	Container string // the container's name; empty for a sandbox
	Attempt   uint32
	State     State
}

// RuntimePod is what a runtime holds of one pod. Observations are shared: whoever gets one only reads it.
type RuntimePod struct {
	PodRef
	// Sandboxes and Containers are ordered by attempt, the newest first, never by clock. Between containers of different
	// names the order has no meaning.
	Sandboxes  []Sandbox
	Containers []Container
}

// Container returns the newest instance of the container of that name, nil if there is none.
func (p *RuntimePod) Container(name string) *Container {
	for i := range p.Containers {
		if p.Containers[i].Name == name {
			return &p.Containers[i]
		}
	}
	return nil
}

// Empty reports that the runtime holds nothing of the pod.
func (p *RuntimePod) Empty() bool { return len(p.Sandboxes) == 0 && len(p.Containers) == 0 }

// Sandbox is an observed sandbox.
type Sandbox struct {
	ID             string
	Attempt        uint32
	Ready          bool
	CreatedAt      time.Time
	IPs            []string // the pod's addresses, the primary one first; none where the pod shares the host's network
	HostNetwork    bool
	RuntimeHandler string
	Labels         map[string]string
	Annotations    map[string]string
}

// Container is an observed container. Times that have not come yet are zero.
type Container struct {
	ID          string
	SandboxID   string
	Name        string
	Attempt     uint32
	State       State
	Image       string // as the container was asked to run it
	ImageID     string // as the runtime identifies it, for a status: a digest reference or an ID
	CreatedAt   time.Time
	StartedAt   time.Time
	FinishedAt  time.Time
	ExitCode    int32
	Reason      string // the runtime's own, such as "OOMKilled"; may be empty
	Message     string
	LogPath     string // absolute
	StopSignal  string // with which it is told to stop, such as "SIGTERM"; empty where the runtime does not tell
	Labels      map[string]string
	Annotations map[string]string
	// ReadOnlyBelow are the paths of mounts that are read-only with all that is mounted below them.
	ReadOnlyBelow []string
	// Resources is what the container may use, as the runtime has it; nil where it does not tell.
	Resources *ContainerResources
}

// ContainerResources is what a container may use. Zero is no limit, and no request.
type ContainerResources struct {
	CPURequest  int64 // thousandths of a CPU, as far as shares can say: 0 to 2 are one
	CPULimit    int64 // thousandths of a CPU
	MemoryLimit int64 // bytes
}

// Image is a local image.
type Image struct {
	ID          string
	RepoTags    []string
	RepoDigests []string
	Size        uint64 // bytes
	UID         *int64 // the image's numeric user, nil if it is named or not set
	Username    string // the image's user by name, empty if it is numeric or not set
	Pinned      bool   // must not be collected
}

// ExecResult is the outcome of a command that was run to its end.
type ExecResult struct {
	Stdout   []byte
	Stderr   []byte
	ExitCode int32
}

// RuntimeStatus is how a runtime says it is.
type RuntimeStatus struct {
	Name    string // such as "containerd"
	Version string
	// RuntimeReady and NetworkReady are CRI's two conditions. A pod with a network of its own waits for the second.
	RuntimeReady Condition
	NetworkReady Condition
	// CgroupDriver is "cgroupfs" or "systemd", empty where the runtime does not tell.
	CgroupDriver string
	// Handlers are what [SandboxSpec.RuntimeHandler] may name; the default one's name is empty.
	Handlers []RuntimeHandler
	// SupplementalGroupsPolicy says that a pod's supplementalGroupsPolicy is carried out.
	SupplementalGroupsPolicy bool
}

// RuntimeHandler is a way in which a runtime runs sandboxes, and what it can do.
type RuntimeHandler struct {
	Name                    string
	RecursiveReadOnlyMounts bool
	UserNamespaces          bool
}

// Condition is a yes or no with its reason.
type Condition struct {
	OK      bool
	Reason  string
	Message string
}

package podmill

import (
	"context"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Runtime is all that an agent asks of a container runtime. It is the union of small roles; a block takes the roles that it
// uses and never the union.
//
// A pod's life, as a runtime sees it: RunSandbox; for each container CreateContainer, StartContainer, and as often as it is
// restarted StopContainer, RemoveContainer and another CreateContainer with the next attempt; StopSandbox; RemoveSandbox. In
// between, ListPods and InspectPod at any time.
//
// Every method may be called concurrently, obeys ctx, and returns promptly when ctx ends; the work may then still happen.
// A caller that got an error does not know whether the call took effect, and looks again. ErrNotFound, and nothing else,
// means that the thing is not there.
//
// More than this is offered by optional interfaces ([EventStreamer], [SandboxInspector], [StatusReporter], [LogReopener], [ExecStreamer],
// [Resizer]), found with [As].
type Runtime interface {
	Lister
	SandboxRunner
	ContainerRunner
	ImageStore
	Execer
}

// Lister tells what the runtime holds.
type Lister interface {
	// ListPods replaces the contents of snap by one [Item] for each sandbox and container that the runtime holds, running or
	// not. A caller passes the same snapshot again and again, so that strings that did not change cost no allocation. The items
	// of a failed listing are undefined. A listing may be a mixture of two moments; it never omits what existed throughout the
	// call.
	ListPods(ctx context.Context, snap *Snapshot) error
	// InspectPod returns everything that the runtime holds under a pod's UID, read after the call began. A pod that the
	// runtime does not know is an answer without sandboxes and containers, not an error. A container that vanishes between
	// two looks is left out.
	InspectPod(ctx context.Context, uid types.UID) (*RuntimePod, error)
}

// SandboxRunner runs the shared environment of a pod's containers.
type SandboxRunner interface {
	// RunSandbox creates and starts a sandbox and returns its ID. The pair of pod and attempt is unique: a second call
	// with the same pair fails while the first sandbox exists. What a failed call left behind is in the next listing.
	RunSandbox(ctx context.Context, spec *SandboxSpec) (id string, err error)
	// StopSandbox stops every container that still runs in the sandbox, at once, and gives back its network. It is
	// idempotent; a sandbox that is not there is stopped.
	StopSandbox(ctx context.Context, id string) error
	// RemoveSandbox removes a sandbox and its containers, stopping them first. It is idempotent; a sandbox that is not there
	// is removed.
	RemoveSandbox(ctx context.Context, id string) error
}

// ContainerRunner runs containers in a sandbox.
type ContainerRunner interface {
	// CreateContainer creates a container in a ready sandbox and returns its ID. The triple of pod, container name and attempt
	// is unique. It does not pull: an image that is not there is ErrNotFound.
	CreateContainer(ctx context.Context, spec *ContainerSpec) (id string, err error)
	// StartContainer starts a created container. A container is started at most once in its life.
	StartContainer(ctx context.Context, id string) error
	// StopContainer sends the container's stop signal, waits for up to grace, kills what is left, and returns when the
	// container has exited. A grace of zero or less kills at once. It is idempotent, and a container that is not there is stopped.
	// A second call with a shorter grace, concurrent or after the first was cancelled, shortens the wait.
	StopContainer(ctx context.Context, id string, grace time.Duration) error
	// RemoveContainer removes a container, killing it first where it runs. It is idempotent; a container that is not there is
	// removed.
	RemoveContainer(ctx context.Context, id string) error
}

// ImageStore holds images. An image is named by a reference (docker.io/library/busybox:1.36) or by its ID.
type ImageStore interface {
	// PullImage fetches an image and returns what CreateContainer should be given as [ContainerSpec.Image].
	PullImage(ctx context.Context, pull *ImagePull) (image string, err error)
	// InspectImage returns a local image, ErrNotFound if it is not here.
	InspectImage(ctx context.Context, image string) (*Image, error)
	// ListImages returns all local images.
	ListImages(ctx context.Context) ([]Image, error)
	// RemoveImage removes an image with all its names. It is idempotent.
	RemoveImage(ctx context.Context, image string) error
}

// Execer runs a command in a running container.
type Execer interface {
	// Exec runs a command to its end, without standard input. An exit code other than zero is a result and not an error.
	// When ctx ends, Exec returns its error; the command may be left running.
	Exec(ctx context.Context, containerID string, command []string) (*ExecResult, error)
}

// ExecStreamer is an optional interface of a Runtime that serves the streams of a command by itself.
type ExecStreamer interface {
	// ExecURL returns where the runtime serves a command in a running container, as the CRI's Exec does: whoever asks there next, by SPDY or WebSocket in
	// the remote command protocol of Kubernetes, gets its streams. The URL can be used once, and not for long.
	ExecURL(ctx context.Context, containerID string, exec ExecRequest) (*url.URL, error)
}

// ExecRequest is a command and the streams that are wanted of it, at least one. With a TTY there is no Stderr.
type ExecRequest struct {
	Command                    []string
	Stdin, Stdout, Stderr, TTY bool
}

// EventStreamer is an optional interface of a Runtime that tells of changes as they happen.
type EventStreamer interface {
	// StreamEvents calls on each time that something of a pod may have changed. It blocks until ctx ends or the stream breaks, and
	// returns why. Events are hints: they may be lost, doubled or late. on returns at once.
	StreamEvents(ctx context.Context, connected func(), on func(RuntimeEvent)) error
}

// RuntimeEvent says that something of a pod may have changed.
type RuntimeEvent struct {
	Pod types.UID
	// ID and State say what has changed, where the runtime tells: that the sandbox or container of that ID has come at least as far as
	// State. To whom that is known already the event is no news. StateUnknown says nothing, as for what was removed.
	ID    string
	State State
}

// SandboxInspector is an optional interface of a Runtime that can look at one sandbox at less cost than at the whole pod.
type SandboxInspector interface {
	// InspectSandbox returns a sandbox as it is now. One that is not there is [ErrNotFound].
	InspectSandbox(ctx context.Context, id string) (*Sandbox, error)
}

// StatusReporter is an optional interface of a Runtime that can tell how it is.
type StatusReporter interface {
	// RuntimeStatus asks the runtime how it is, now.
	RuntimeStatus(ctx context.Context) (*RuntimeStatus, error)
}

// LogReopener is an optional interface of a Runtime that keeps a container's log file open, and must be told when the
// file was rotated away.
type LogReopener interface {
	// ReopenLog makes the runtime open a running container's log file anew, at the path that it was created with.
	ReopenLog(ctx context.Context, containerID string) error
}

// Resizer is an optional interface of a Runtime that can change what a container may use while it runs (KEP-1287).
type Resizer interface {
	// ResizeContainer gives a container the CPU and memory that resize says in place of what it has, and does not restart it. What is not limited any more is
	// freed. It is idempotent: the same again changes nothing. A memory limit below what the container uses is refused and leaves all as it is: the kernel
	// would make room by killing. That of a container that does not run is an error.
	ResizeContainer(ctx context.Context, id string, resize *Resize) error
}

// Resize is what a running container is to have. As in a [ContainerSpec], resources are read from the Container, and what the pod as a whole says from the Pod.
type Resize struct {
	Pod       *corev1.Pod
	Container *corev1.Container
}

// As finds the first T among what wraps what: v itself or, where v wraps another and says so by a method Unwrap() Runtime or, for what gives objects, Unwrap() any,
// one that it wraps. It is how optional interfaces are found. A method of one that is found may still answer [errors.ErrUnsupported], which means the same
// as not being found.
func As[T any](v any) (T, bool) {
	for v != nil {
		if t, ok := v.(T); ok {
			return t, true
		}
		switch wrapper := v.(type) {
		case interface{ Unwrap() Runtime }:
			v = wrapper.Unwrap()
		case interface{ Unwrap() any }:
			v = wrapper.Unwrap()
		default:
			v = nil
		}
	}
	var none T
	return none, false
}

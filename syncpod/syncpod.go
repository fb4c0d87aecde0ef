package syncpod

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/httpget"
)

// Cache is what is known of the runtime.
type Cache interface {
	// Observe returns what the runtime holds of a pod: if fresh, by an inspection that began after the call, else the newest known.
	// What it returns is shared and never nil without an error.
	Observe(ctx context.Context, pod types.UID, fresh bool) (*podmill.RuntimePod, error)
}

// Sandboxes chooses and runs the sandboxes of pods.
type Sandboxes interface {
	// Choose returns the sandbox to use or, if none will do, nil, the attempt to create and why. It is pure.
	Choose(pod *corev1.Pod, seen *podmill.RuntimePod) (current *podmill.Sandbox, attempt uint32, why string)
	// Spec returns the spec of a pod's sandbox: the same one for the same pod and attempt. LogDirectory and CgroupParent are set by
	// the caller. Where there can be none, people have been told.
	Spec(pod *corev1.Pod, attempt uint32) (*podmill.SandboxSpec, error)
	// Run runs a sandbox and returns it with its addresses. People have been told of a failure.
	Run(ctx context.Context, spec *podmill.SandboxSpec) (*podmill.Sandbox, error)
	// Stop stops, and Remove removes, all sandboxes that were seen, with what is in them. Both may be repeated.
	Stop(ctx context.Context, seen *podmill.RuntimePod) error
	Remove(ctx context.Context, seen *podmill.RuntimePod) error
}

// Images brings images to the node.
type Images interface {
	// PullSecrets returns the credentials that a pod names. Those that could be found come along with an error for the others.
	PullSecrets(ctx context.Context, pod *corev1.Pod) ([]podmill.ImageAuth, error)
	// EnsureImage makes a container's image be there, as its pull policy says. The error is a *podmill.ReasonError where the kubelet
	// has a reason for it, such as ErrImagePull or ImagePullBackOff, and people have been told. The sandbox may still be on its way: it is
	// run beside this, and if it cannot be, ctx ends.
	EnsureImage(
		ctx context.Context, pod *corev1.Pod, c *corev1.Container, sandbox *podmill.SandboxSpec, auths []podmill.ImageAuth,
	) (*podmill.Image, error)
}

// Cgroups keeps the cgroups of pods.
type Cgroups interface {
	// EnsureCgroup makes a pod's cgroup and returns its name as the runtime wants it.
	EnsureCgroup(ctx context.Context, pod *corev1.Pod) (parent string, err error)
	// RemoveCgroup removes a pod's cgroup. One that is not there is removed.
	RemoveCgroup(ctx context.Context, pod types.UID) error
}

// UserNamespaces allots user and group IDs to pods that have a user namespace of their own.
type UserNamespaces interface {
	// Allot returns the IDs of a pod: the same for life, also after a restart of the agent, and no other pod's.
	Allot(pod types.UID) (*podmill.IDMappings, error)
	// Release takes them back. It is idempotent, and called when nothing of the pod runs any more.
	Release(pod types.UID) error
}

// Prober probes the containers of pods.
type Prober interface {
	// Probe takes what was seen of a pod: containers that run are probed from now on, those that are gone are not any more. It returns at once
	// how they are, by container ID; one that has no probes may be left out. In a pod that is ending, only readiness is still probed. That a
	// container's health has changed is said by syncing its pod.
	Probe(pod *corev1.Pod, seen *podmill.RuntimePod, ending bool) map[string]podmill.Health
}

// Reporter is told how a pod stands, and makes a status of it. Reporting the same again costs nothing.
type Reporter interface {
	Report(ctx context.Context, pod *corev1.Pod, seen *podmill.RuntimePod, p podmill.Progress) error
}

// Config is what a [Syncer] cannot do without. A runtime that is no [podmill.Execer] either has no hooks that run commands: they fail.
type Config struct {
	Runtime   podmill.ContainerRunner
	Cache     Cache
	Sandboxes Sandboxes
	Images    Images
	Reporter  Reporter
}

// Syncer makes pods in the runtime into what their specs want, and takes them away again.
//
// Calls for one pod must come one after another, as pod workers make them; calls for different pods may be concurrent.
type Syncer struct {
	Config
	options

	http *httpget.Client

	mu      sync.Mutex
	pods    map[types.UID]*memory
	keepers map[types.UID]*keeper
}

// New returns a syncer.
func New(cfg Config, opts ...Option) (*Syncer, error) {
	if cfg.Runtime == nil || cfg.Cache == nil || cfg.Sandboxes == nil || cfg.Images == nil || cfg.Reporter == nil {
		return nil, errors.New("syncpod: every field of Config is required")
	}
	s := &Syncer{
		Config: cfg, http: httpget.NewClient(), pods: map[types.UID]*memory{}, keepers: map[types.UID]*keeper{},
	}
	for _, opt := range opts {
		opt(&s.options)
	}
	for _, dir := range []string{s.root, s.logRoot} {
		if dir != "" && !filepath.IsAbs(dir) {
			return nil, errors.New("syncpod: directory " + dir + " is not absolute")
		}
	}
	if d := s.maxBackoff; d != 0 && (d < time.Second || d > backoffMax) {
		return nil, fmt.Errorf("syncpod: a longest restart delay of %v is not between 1s and %v", d, backoffMax)
	}
	return s, nil
}

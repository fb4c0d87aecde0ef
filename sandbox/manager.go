package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// Runtime is what a [Manager] asks of a runtime. A [podmill.Runtime] has it.
type Runtime interface {
	podmill.SandboxRunner
	InspectPod(ctx context.Context, uid types.UID) (*podmill.RuntimePod, error)
}

// Manager runs the sandboxes of pods. It keeps nothing but which pod has which ports of the node: what else it knows it is given, so that it knows as
// much after a restart.
type Manager struct {
	runtime Runtime
	opts    options
	ports   claims
	// missing lets the agent say once that it has no cluster DNS. Every pod asks for one unless it says otherwise, and on a node
	// without a cluster there is nothing to be done about it.
	missing sync.Once
}

// New returns a manager of the sandboxes in a runtime.
func New(runtime Runtime, opts ...Option) *Manager {
	return &Manager{runtime: runtime, opts: newOptions(opts), ports: claims{pods: map[types.UID]claim{}}}
}

// Choose returns the sandbox to use of those that a pod has, with its attempt; or, if none will do, nil, the attempt to create and
// why. seen may be nil. It does not ask whether the pod needs a sandbox: one that has ended does not. A pod that runs has its ports of the node.
func (m *Manager) Choose(pod *corev1.Pod, seen *podmill.RuntimePod) (current *podmill.Sandbox, attempt uint32, why string) {
	// A class that is not known any more is Spec's to refuse. It is no reason to take away a sandbox that runs.
	current, attempt, why = choose(pod, seen)
	if current != nil {
		_ = m.ports.take(pod, func() []*corev1.Pod { return nil }) // whoever came first has them
	}
	return current, attempt, why
}

// Spec returns the spec of a pod's sandbox, without LogDirectory and CgroupParent, which are the caller's to set. The same pod, attempt
// and resolv.conf give the same spec. A pod that cannot have one fails with an event and the name of the field; one that wants a port of the node which
// another pod has, with the reason NodePorts. From now on, until Remove, the ports are its own.
func (m *Manager) Spec(pod *corev1.Pod, attempt uint32) (*podmill.SandboxSpec, error) {
	spec, err := m.spec(pod, attempt)
	if err == nil {
		err = m.ports.take(pod, m.opts.neighbours)
	}
	if err != nil {
		refused := &podmill.ReasonError{}
		if !errors.As(err, &refused) {
			refused = &podmill.ReasonError{Reason: "CreateContainerConfigError", Message: err.Error(), Err: err}
		}
		m.event(pod, corev1.EventTypeWarning, "FailedCreatePodSandBox", "Failed to create pod sandbox: "+refused.Message)
		return nil, fmt.Errorf("make the sandbox spec of pod %s: %w", podmill.RefOf(pod), refused)
	}
	return spec, nil
}

func (m *Manager) spec(pod *corev1.Pod, attempt uint32) (*podmill.SandboxSpec, error) {
	host, err := m.hostDNS(pod)
	if err != nil {
		return nil, err
	}
	return specOf(pod, attempt, &m.opts, host)
}

// hostDNS returns the node's DNS configuration, as far as a pod may need it.
func (m *Manager) hostDNS(pod *corev1.Pod) (*podmill.DNS, error) {
	if m.opts.resolvConf == "" || pod.Spec.DNSPolicy == corev1.DNSNone {
		return &podmill.DNS{Servers: []string{"127.0.0.1"}, Searches: []string{"."}}, nil
	}
	return readResolvConf(m.opts.resolvConf)
}

// Run runs a sandbox and returns it with its addresses. After an error a sandbox may be there; look before the next attempt.
//
// A pod in the host's network has no address of its own, so that the runtime is not asked for one: what is returned of its sandbox
// is what was asked for.
func (m *Manager) Run(ctx context.Context, spec *podmill.SandboxSpec) (*podmill.Sandbox, error) {
	pod, ref := spec.Pod, podmill.RefOf(spec.Pod)
	if spec.Attempt > 0 {
		m.event(pod, corev1.EventTypeNormal, "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.")
	}
	m.warn(pod)
	start := time.Now()
	id, err := m.runtime.RunSandbox(ctx, spec)
	m.opts.observer.ran(ref, spec.RuntimeHandler, time.Since(start), err)
	if err != nil {
		err = fmt.Errorf("run sandbox %d of pod %s: %w", spec.Attempt, ref, err)
		if ctx.Err() == nil {
			m.event(pod, corev1.EventTypeWarning, "FailedCreatePodSandBox", fmt.Sprintf("Failed to create pod sandbox: %v", errors.Unwrap(err)))
		}
		return nil, err
	}
	logr.FromContextOrDiscard(ctx).V(1).Info("sandbox runs", "pod", ref.String(), "sandbox", id, "attempt", spec.Attempt)
	if pod.Spec.HostNetwork {
		return &podmill.Sandbox{
			ID: id, Attempt: spec.Attempt, Ready: true, HostNetwork: true, RuntimeHandler: spec.RuntimeHandler,
			Labels: spec.Labels, Annotations: spec.Annotations,
		}, nil
	}
	s, err := m.inspect(ctx, ref.UID, id)
	if err != nil {
		if ctx.Err() == nil {
			m.event(pod, corev1.EventTypeWarning, "FailedStatusPodSandBox", fmt.Sprintf("Unable to get pod sandbox status: %v", err))
		}
		return nil, fmt.Errorf("inspect sandbox %s of pod %s: %w", id, ref, err)
	}
	return s, nil
}

// inspect looks at a sandbox that was just made. One that is of no use is an error now rather than after containers were started in it.
func (m *Manager) inspect(ctx context.Context, uid types.UID, id string) (*podmill.Sandbox, error) {
	s, err := m.find(ctx, uid, id)
	switch {
	case err != nil:
		return nil, err
	case !s.Ready:
		return nil, errors.New("the sandbox is not ready")
	case len(s.IPs) == 0:
		return nil, errors.New("the sandbox has no address")
	}
	return s, nil
}

// find looks at a sandbox alone where the runtime can do that, else at all that there is of the pod.
func (m *Manager) find(ctx context.Context, uid types.UID, id string) (*podmill.Sandbox, error) {
	if inspector, ok := podmill.As[podmill.SandboxInspector](m.runtime); ok {
		s, err := inspector.InspectSandbox(ctx, id)
		if !errors.Is(err, errors.ErrUnsupported) {
			return s, err
		}
	}
	seen, err := m.runtime.InspectPod(ctx, uid)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(seen.Sandboxes, func(s podmill.Sandbox) bool { return s.ID == id })
	if i < 0 {
		return nil, fmt.Errorf("the sandbox has vanished: %w", podmill.ErrNotFound)
	}
	return &seen.Sandboxes[i], nil
}

// Stop stops every sandbox of a pod with all that runs in it. The error names each that could not be stopped; call it again.
func (m *Manager) Stop(ctx context.Context, seen *podmill.RuntimePod) error {
	return each(ctx, seen, "stop", m.runtime.StopSandbox)
}

// Remove removes every sandbox of a pod with its containers, and gives back its ports of the node. The error names each that could not be removed; call
// it again.
func (m *Manager) Remove(ctx context.Context, seen *podmill.RuntimePod) error {
	err := each(ctx, seen, "remove", m.runtime.RemoveSandbox)
	if err == nil && seen != nil {
		m.ports.drop(seen.UID)
	}
	return err
}

// each does something to every sandbox of a pod. What is not there is done.
func each(ctx context.Context, seen *podmill.RuntimePod, verb string, do func(context.Context, string) error) error {
	if seen == nil {
		return nil
	}
	var errs []error
	for i := range seen.Sandboxes {
		id := seen.Sandboxes[i].ID
		if err := do(ctx, id); err != nil && !errors.Is(err, podmill.ErrNotFound) {
			errs = append(errs, fmt.Errorf("%s sandbox %s of pod %s: %w", verb, id, seen.PodRef, err))
		}
	}
	return errors.Join(errs...)
}

// warn tells people what a pod's sandbox could not have of what was asked for.
func (m *Manager) warn(pod *corev1.Pod) {
	host, err := m.hostDNS(pod)
	if err != nil {
		return // the spec that is being run was made before: resolv.conf is being replaced
	}
	_, warnings, _ := podDNS(pod, m.opts.dns, host) // without an error, or there were no spec to run
	for _, w := range warnings {
		tell := func() { m.event(pod, corev1.EventTypeWarning, w.reason, w.message) }
		if w.reason == missingClusterDNSReason {
			m.missing.Do(tell)
			continue
		}
		tell()
	}
}

func (m *Manager) event(pod *corev1.Pod, eventType, reason, message string) {
	if m.opts.events != nil {
		m.opts.events.Event(podmill.ReferenceTo(pod, ""), eventType, reason, message)
	}
}

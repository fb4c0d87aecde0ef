package podmilltest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/podmill/podmill"
)

type sandbox struct {
	spec *podmill.SandboxSpec
	pod  *pod
	seen podmill.Sandbox
}

// RunSandbox implements [podmill.SandboxRunner].
func (r *Runtime) RunSandbox(ctx context.Context, spec *podmill.SandboxSpec) (string, error) {
	ref := podmill.RefOf(spec.Pod)
	var id string
	err := r.call(ctx, OpRunSandbox, fmt.Sprintf("%s attempt=%d", podName(ref), spec.Attempt), func() error {
		s, err := r.newSandbox(ref, spec)
		if err != nil {
			return fmt.Errorf("run sandbox of pod %s: %w", ref, err)
		}
		id = s.seen.ID
		return nil
	})
	if err != nil {
		return "", err
	}
	return id, nil
}

func (r *Runtime) newSandbox(ref podmill.PodRef, spec *podmill.SandboxSpec) (*sandbox, error) {
	if !r.status.RuntimeReady.OK {
		return nil, errors.New("the runtime is not ready")
	}
	if !r.status.NetworkReady.OK && !spec.Pod.Spec.HostNetwork {
		return nil, errors.New("the network is not ready: " + r.status.NetworkReady.Message)
	}
	if p := r.pods[ref.UID]; p != nil {
		for _, other := range p.sandboxes {
			if other.seen.Attempt == spec.Attempt {
				return nil, fmt.Errorf("attempt %d is reserved for sandbox %s", spec.Attempt, other.seen.ID)
			}
		}
	}
	p := r.podOf(ref)
	s := &sandbox{spec: spec, pod: p, seen: podmill.Sandbox{
		ID:             r.newID("sandbox", string(ref.UID)),
		Attempt:        spec.Attempt,
		Ready:          true,
		CreatedAt:      time.Now(),
		HostNetwork:    spec.Pod.Spec.HostNetwork,
		RuntimeHandler: spec.RuntimeHandler,
		Labels:         maps.Clone(spec.Labels),
		Annotations:    maps.Clone(spec.Annotations),
	}}
	if !s.seen.HostNetwork {
		s.seen.IPs = []string{address(r.seq)}
	}
	at, _ := slices.BinarySearchFunc(p.sandboxes, spec.Attempt, func(o *sandbox, attempt uint32) int { return int(attempt) - int(o.seen.Attempt) })
	p.sandboxes = slices.Insert(p.sandboxes, at, s)
	r.sandboxes[s.seen.ID] = s
	r.changed(p)
	return s, nil
}

// InspectSandbox implements [podmill.SandboxInspector].
func (r *Runtime) InspectSandbox(ctx context.Context, id string) (*podmill.Sandbox, error) {
	var seen podmill.Sandbox
	err := r.call(ctx, OpInspectSandbox, r.sandboxName(id), func() error {
		s := r.sandboxes[id]
		if s == nil {
			return fmt.Errorf("sandbox %s: %w", id, podmill.ErrNotFound)
		}
		seen = s.look()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &seen, nil
}

// look returns the sandbox as it is now, in memory of its own.
func (s *sandbox) look() podmill.Sandbox {
	seen := s.seen
	seen.IPs, seen.Labels, seen.Annotations = slices.Clone(seen.IPs), maps.Clone(seen.Labels), maps.Clone(seen.Annotations)
	return seen
}

// address returns the nth address of 10.0.0.0/8, which no other sandbox of the same runtime ever had.
func address(n int) string { return fmt.Sprintf("10.%d.%d.%d", n>>16&255, n>>8&255, n&255) }

// StopSandbox implements [podmill.SandboxRunner].
func (r *Runtime) StopSandbox(ctx context.Context, id string) error {
	return r.call(ctx, OpStopSandbox, r.sandboxName(id), func() error {
		if s := r.sandboxes[id]; s != nil {
			r.stopSandbox(s)
		}
		return nil
	})
}

func (r *Runtime) stopSandbox(s *sandbox) {
	for _, c := range s.pod.containers {
		if c.seen.SandboxID == s.seen.ID {
			r.kill(c)
		}
	}
	r.loseSandbox(s)
}

// loseSandbox makes a sandbox not ready, whatever its containers do.
func (r *Runtime) loseSandbox(s *sandbox) {
	if s.seen.Ready {
		s.seen.Ready, s.seen.IPs = false, nil
		r.changed(s.pod)
	}
}

// RemoveSandbox implements [podmill.SandboxRunner].
func (r *Runtime) RemoveSandbox(ctx context.Context, id string) error {
	return r.call(ctx, OpRemoveSandbox, r.sandboxName(id), func() error {
		if s := r.sandboxes[id]; s != nil {
			r.removeSandbox(s)
		}
		return nil
	})
}

func (r *Runtime) removeSandbox(s *sandbox) {
	r.stopSandbox(s)
	for _, c := range slices.Clone(s.pod.containers) {
		if c.seen.SandboxID == s.seen.ID {
			r.removeContainer(c)
		}
	}
	delete(r.sandboxes, s.seen.ID)
	s.pod.sandboxes = slices.DeleteFunc(s.pod.sandboxes, func(o *sandbox) bool { return o == s })
	r.changed(s.pod)
	r.forget(s.pod)
}

// sandboxName is how the log names a sandbox.
func (r *Runtime) sandboxName(id string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.sandboxes[id]; s != nil {
		return fmt.Sprintf("%s attempt=%d", podName(s.pod.PodRef), s.seen.Attempt)
	}
	return "unknown sandbox " + id
}

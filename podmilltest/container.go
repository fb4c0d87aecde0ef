package podmilltest

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

type container struct {
	spec    *podmill.ContainerSpec
	sandbox *sandbox
	image   *storedImage
	seen    podmill.Container

	process *process
	files   map[string]string // that it wrote, by path
	timer   *time.Timer       // of the process's next step
	log     *os.File          // nil where there is nowhere to log to
	done    chan struct{}     // closed when it has exited or was removed
	told    bool              // it was sent its stop signal
	memory  int64             // bytes that it uses
}

// CreateContainer implements [podmill.ContainerRunner].
func (r *Runtime) CreateContainer(ctx context.Context, spec *podmill.ContainerSpec) (string, error) {
	ref := podmill.RefOf(spec.Sandbox.Pod)
	name := fmt.Sprintf("%s %s#%d", podName(ref), spec.Container.Name, spec.Attempt)
	var id string
	err := r.call(ctx, OpCreateContainer, name, func() error {
		c, err := r.newContainer(ref, spec)
		if err != nil {
			return fmt.Errorf("create container %s of pod %s: %w", spec.Container.Name, ref, err)
		}
		id = c.seen.ID
		return nil
	})
	if err != nil {
		return "", err
	}
	return id, nil
}

func (r *Runtime) newContainer(ref podmill.PodRef, spec *podmill.ContainerSpec) (*container, error) {
	s := r.sandboxes[spec.SandboxID]
	if s == nil {
		return nil, fmt.Errorf("sandbox %q: %w", spec.SandboxID, podmill.ErrNotFound)
	}
	if !s.seen.Ready {
		return nil, fmt.Errorf("sandbox %s is not running", s.seen.ID)
	}
	image, err := r.findImage(spec.Image)
	if err != nil {
		return nil, err
	}
	p := s.pod
	for _, other := range p.containers {
		if other.seen.Name == spec.Container.Name && other.seen.Attempt == spec.Attempt {
			return nil, fmt.Errorf("attempt %d is reserved for container %s", spec.Attempt, other.seen.ID)
		}
	}
	c := &container{spec: spec, sandbox: s, image: image, files: map[string]string{}, done: make(chan struct{}), seen: podmill.Container{
		ID:          r.newID("container", string(ref.UID)+spec.Container.Name),
		SandboxID:   s.seen.ID,
		Name:        spec.Container.Name,
		Attempt:     spec.Attempt,
		State:       podmill.StateCreated,
		Image:       image.called(spec.Image),
		ImageID:     image.seen.RepoDigests[0],
		CreatedAt:   time.Now(),
		Labels:      maps.Clone(spec.Labels),
		Annotations: maps.Clone(spec.Annotations),
		Resources:   resourcesOf(spec.Sandbox.Pod, spec.Container),
	}}
	c.memory = leastMemory
	for _, m := range spec.Mounts {
		if m.RecursiveReadOnly != "" && m.RecursiveReadOnly != corev1.RecursiveReadOnlyDisabled {
			c.seen.ReadOnlyBelow = append(c.seen.ReadOnlyBelow, m.ContainerPath)
		}
	}
	if spec.LogPath != "" {
		c.seen.LogPath = filepath.Join(s.spec.LogDirectory, spec.LogPath)
	}
	if name, _ := stopSignal(spec.Container); name != "TERM" {
		c.seen.StopSignal = "SIG" + name
	}
	at, _ := slices.BinarySearchFunc(p.containers, spec.Attempt, func(o *container, attempt uint32) int { return int(attempt) - int(o.seen.Attempt) })
	p.containers = slices.Insert(p.containers, at, c)
	r.containers[c.seen.ID] = c
	r.changed(p)
	return c, nil
}

// StartContainer implements [podmill.ContainerRunner].
func (r *Runtime) StartContainer(ctx context.Context, id string) error {
	return r.call(ctx, OpStartContainer, r.containerName(id), func() error {
		c, err := r.findContainer(id)
		if err != nil {
			return err
		}
		if err := r.start(c); err != nil {
			return fmt.Errorf("start container %s of pod %s: %w", c.seen.Name, c.sandbox.pod.PodRef, err)
		}
		return nil
	})
}

func (r *Runtime) start(c *container) error {
	if c.seen.State != podmill.StateCreated {
		return fmt.Errorf("it is %v already", c.seen.State)
	}
	if !c.sandbox.seen.Ready {
		return fmt.Errorf("sandbox %s is not running", c.seen.SandboxID)
	}
	process, err := newProcess(r.commandLine(c), environment(c), c)
	if err != nil {
		// A real runtime has begun by then: what is left is a container that failed to run.
		r.exited(c, 128, "StartError", err.Error())
		return err
	}
	c.process = process
	c.openLog()
	c.seen.State, c.seen.StartedAt = podmill.StateRunning, time.Now()
	r.changed(c.sandbox.pod)
	r.step(c)
	return nil
}

// StopContainer implements [podmill.ContainerRunner].
func (r *Runtime) StopContainer(ctx context.Context, id string, grace time.Duration) error {
	end := r.log.begin(OpStopContainer, fmt.Sprintf("%s grace=%v", r.containerName(id), grace))
	err := r.stop(ctx, id, grace)
	end(err)
	return err
}

// stopSignal is the name and, in Linux, the number of the signal that a container asks to be stopped with: TERM unless it says another.
func stopSignal(c *corev1.Container) (name string, number int32) {
	if l := c.Lifecycle; l != nil && l.StopSignal != nil {
		numbers := map[string]int32{"HUP": 1, "INT": 2, "QUIT": 3, "USR1": 10, "USR2": 12}
		if name = strings.TrimPrefix(string(*l.StopSignal), "SIG"); numbers[name] != 0 {
			return name, numbers[name]
		}
	}
	return "TERM", 15
}

// stop waits here, for the caller's own grace, so that the shortest of several waits is the one that kills.
func (r *Runtime) stop(ctx context.Context, id string, grace time.Duration) error {
	var (
		c       *container
		running bool
	)
	err := r.delayed(ctx, OpStopContainer, func() error {
		c = r.containers[id]
		switch {
		case c == nil:
		case grace <= 0 || c.seen.State == podmill.StateUnknown:
			r.kill(c)
		case !c.told:
			c.told = true
			name, number := stopSignal(c.spec.Container)
			r.signal(c, name, number)
		}
		running = c != nil && c.seen.State == podmill.StateRunning
		return nil
	})
	if err != nil || !running {
		return err
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kill(c)
	return nil
}

// RemoveContainer implements [podmill.ContainerRunner].
func (r *Runtime) RemoveContainer(ctx context.Context, id string) error {
	return r.call(ctx, OpRemoveContainer, r.containerName(id), func() error {
		if c := r.containers[id]; c != nil {
			r.removeContainer(c)
		}
		return nil
	})
}

func (r *Runtime) removeContainer(c *container) {
	r.kill(c)
	c.end()
	p := c.sandbox.pod
	delete(r.containers, c.seen.ID)
	p.containers = slices.DeleteFunc(p.containers, func(o *container) bool { return o == c })
	r.changed(p)
	r.forget(p)
}

func (r *Runtime) findContainer(id string) (*container, error) {
	if c := r.containers[id]; c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("container %q: %w", id, podmill.ErrNotFound)
}

// containerName is how the log names a container.
func (r *Runtime) containerName(id string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.containers[id]; c != nil {
		return c.String()
	}
	return "unknown container " + id
}

// String is namespace/pod container#attempt.
func (c *container) String() string {
	return fmt.Sprintf("%s %s#%d", podName(c.sandbox.pod.PodRef), c.seen.Name, c.seen.Attempt)
}

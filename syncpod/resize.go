package syncpod

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/qos"
	"github.com/podmill/podmill/internal/resources"
)

// Other resources of a pod that runs go three steps (KEP-1287). What its spec asks for is allocated where there is room, and that is kept in the pod's directory; until then
// the pod goes on with what it was allocated before. What was allocated is a plan like any other: a container is resized while it runs or, where its
// resizePolicy wants that, started anew, and the pod's cgroup is as large as the larger of both sizes until all is done. So an agent that is killed in the middle finds a
// resize that is under way, and goes on.

// sizing is what is remembered of a pod's resources.
type sizing struct {
	wanted *corev1.Pod // as its spec is
	given  *corev1.Pod // the same with what was allocated
	// reason and message are why it is not given what it wants.
	reason, message string
	// unresized is why the last try to resize a container came to nothing.
	unresized string
}

// size returns the pod with what is allocated of the CPU and memory that it asks for.
func (s *Syncer) size(ctx context.Context, pod *corev1.Pod, m *memory) (*corev1.Pod, error) {
	pod, err := s.withOverhead(ctx, pod)
	if err != nil {
		return nil, err
	}
	m.wanted = pod
	if over(pod) {
		return pod, nil
	}
	if m.given == nil {
		if err := s.recall(ctx, pod, m); err != nil {
			return nil, err
		}
	}
	given := resources.Resized(pod, func(c *corev1.Container) (size corev1.ResourceRequirements, ok bool) {
		if had := resources.Container(m.given, c.Name); had != nil {
			return had.Resources, true
		}
		return size, false
	})
	if !samePodSize(m.given, pod) {
		kept := *given
		kept.Spec.Resources = m.given.Spec.Resources
		given = &kept
	}
	reason, message := "", ""
	if given != pod {
		if reason, message = s.withoutRoom(given, pod); reason == "" {
			if err := m.keeper.allocate(pod); err != nil {
				return nil, err
			}
			given = pod
			s.event(pod, "", corev1.EventTypeNormal, eventResizeStarted, "Pod resize started: "+sizesOf(pod))
		}
	}
	if reason != "" && (reason != m.reason || message != m.message) {
		s.event(pod, "", corev1.EventTypeWarning, eventResize+reason, "Pod resize "+reason+": "+message)
	}
	m.given, m.reason, m.message = given, reason, message
	return given, nil
}

// recall finds what a pod was allocated when this process did not run yet.
func (s *Syncer) recall(ctx context.Context, pod *corev1.Pod, m *memory) error {
	seen, err := s.observe(ctx, pod.UID, m)
	if err != nil {
		return err
	}
	kept := false
	m.given = resources.Resized(pod, func(c *corev1.Container) (size corev1.ResourceRequirements, ok bool) {
		size, ok = m.keeper.allocated(c.Name, seen)
		kept = kept || ok
		return size, ok
	})
	if kept && s.room != nil {
		s.room(m.given, m.given) // it counts, also if the agent ended before a status said so
	}
	return nil
}

// withOverhead returns the pod with what its sandbox needs, where its spec does not say.
func (s *Syncer) withOverhead(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	if s.overhead == nil || pod.Spec.RuntimeClassName == nil || pod.Spec.Overhead != nil {
		return pod, nil
	}
	needs, err := s.overhead(ctx, pod)
	if err != nil || len(needs) == 0 {
		return pod, err
	}
	with := *pod
	with.Spec.Overhead = needs
	return &with, nil
}

// withoutRoom returns why a pod cannot have what it wants in place of what it was given; nothing if it can.
func (s *Syncer) withoutRoom(given, wanted *corev1.Pod) (reason, message string) {
	_, resizes := podmill.As[podmill.Resizer](s.Runtime)
	switch {
	case qos.Class(given) != qos.Class(wanted):
		return corev1.PodReasonInfeasible, "Pod QOS Class may not change as a result of resizing"
	case !samePodSize(given, wanted):
		return corev1.PodReasonInfeasible, "In-place resize of the pod's own resources is not supported"
	case !resizes:
		return corev1.PodReasonInfeasible, "In-place resize is not supported by the container runtime"
	case s.room == nil:
		return "", ""
	}
	return s.room(given, wanted)
}

// samePodSize reports that two versions of a pod may use the same as a whole (KEP-2837).
func samePodSize(a, b *corev1.Pod) bool {
	size := func(pod *corev1.Pod) (r corev1.ResourceRequirements) {
		if pod.Spec.Resources != nil {
			r = *pod.Spec.Resources
		}
		return r
	}
	return resources.SameSize(size(a), size(b))
}

// sizesOf tells a pod's resources as the kubelet's events do.
func sizesOf(pod *corev1.Pod) string {
	type size struct {
		Name      string                      `json:"name"`
		Resources corev1.ResourceRequirements `json:"resources"`
	}
	sizes := struct {
		Init       []size `json:"initContainers,omitempty"`
		Containers []size `json:"containers,omitempty"`
		Generation int64  `json:"generation,omitempty"`
	}{Generation: pod.Generation}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; resources.Container(pod, c.Name) != nil {
			sizes.Init = append(sizes.Init, size{c.Name, c.Resources})
		}
	}
	for i := range pod.Spec.Containers {
		sizes.Containers = append(sizes.Containers, size{pod.Spec.Containers[i].Name, pod.Spec.Containers[i].Resources})
	}
	return marshal(sizes)
}

// resize gives running containers what they were allocated. The pod's cgroup grows before them, and shrinks after the last one.
func (s *Syncer) resize(ctx context.Context, pod *corev1.Pod, m *memory, now *situation) error {
	if len(now.Resize) == 0 && !now.Fit {
		return nil
	}
	failed, err := "", s.resizeAll(ctx, pod, m, now)
	if err != nil && ctx.Err() == nil {
		failed = err.Error()
	}
	if failed != m.unresized && failed != "" {
		s.event(pod, "", corev1.EventTypeWarning, eventResizeError, "Pod resize error: "+failed)
	}
	m.unresized = failed
	return err
}

func (s *Syncer) resizeAll(ctx context.Context, pod *corev1.Pod, m *memory, now *situation) error {
	if s.cgroups != nil {
		err := s.step(pod, "cgroup", "", func() error {
			_, err := s.cgroups.EnsureCgroup(ctx, now.roomy)
			return err
		})
		if err != nil {
			return err
		}
	}
	resizer, _ := podmill.As[podmill.Resizer](s.Runtime)
	for i := range now.Resize {
		r := &now.Resize[i]
		err := s.step(pod, "resize", r.Name, func() error {
			return resizer.ResizeContainer(ctx, r.ID, &podmill.Resize{Pod: pod, Container: r.Container})
		})
		if err == nil {
			err = m.keeper.resized(r.Name, r.ID, r.Container.Resources)
		}
		if err != nil {
			return fmt.Errorf("resize container %s: %w", r.Name, err)
		}
	}
	if !now.Fit {
		return nil
	}
	s.event(pod, "", corev1.EventTypeNormal, eventResizeCompleted, "Pod resize completed: "+sizesOf(pod))
	return m.keeper.fits()
}

// roomy returns the pod as large as its containers need while some of them have still another size than they were allocated.
func roomy(pod *corev1.Pod, seen *podmill.RuntimePod, actual map[string]corev1.ResourceRequirements) *corev1.Pod {
	return resources.Resized(pod, func(c *corev1.Container) (size corev1.ResourceRequirements, ok bool) {
		newest := seen.Container(c.Name)
		if newest == nil || newest.State != podmill.StateRunning {
			return size, false
		}
		if size, ok = actual[newest.ID]; ok {
			size = resources.Larger(c.Resources, size)
		}
		return size, ok
	})
}

// startedWith returns the resources that an instance of a container was started with, where it tells.
func startedWith(c *podmill.Container) (r corev1.ResourceRequirements, ok bool) {
	text, ok := c.Annotations[podmill.AnnotationContainerResources]
	return r, ok && json.Unmarshal([]byte(text), &r) == nil
}

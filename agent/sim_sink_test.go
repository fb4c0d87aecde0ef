package agent_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/status"
)

// history is what was told of a pod.
type history struct {
	last *corev1.PodStatus
	gone bool // an API has no such pod any more
	ends int  // how often it was told to have ended
}

// over reports that the last that was told of a pod is that it has ended.
func (h *history) over() bool {
	return h != nil && h.last != nil && (h.last.Phase == corev1.PodSucceeded || h.last.Phase == corev1.PodFailed)
}

// final reports that it is the present life of it that has: of one that comes and goes, the end of a former life may be told late.
func (h *history) final(sp *simPod) bool {
	return h.over() && h.ends >= len(sp.lives) && h.last.StartTime.After(sp.life().since)
}

// simSink is an API that keeps statuses: slow, failing, and losing replies while there is trouble.
type simSink struct{ p *process }

// UpdateStatus implements [podmill.StatusSink].
func (k *simSink) UpdateStatus(ctx context.Context, pod *corev1.Pod, next *corev1.PodStatus) error {
	return k.call(ctx, "UpdateStatus", pod, func(h *history) { k.p.accept(pod, next) })
}

// FinishPod implements [podmill.StatusSink].
func (k *simSink) FinishPod(ctx context.Context, pod *corev1.Pod) error {
	if ctx.Err() == nil && !k.p.dead.Load() {
		k.p.judgeFinish(pod)
	}
	return k.call(ctx, "FinishPod", pod, func(h *history) {
		h.last = nil
		if sp := k.p.pods[pod.UID]; k.p.isAPI(sp.source) && sp.pod.DeletionTimestamp != nil {
			h.gone, sp.wanted = true, false
			k.p.note("the API has let go of %s", sp.ref())
			if !k.p.heard[other].IsZero() {
				sp.noticed = k.p
				k.p.sources[other].Delete(sp.pod)
			}
		}
	})
}

func (k *simSink) call(ctx context.Context, what string, pod *corev1.Pod, do func(*history)) error {
	s := k.p.sim
	trouble := func(kind string) bool { // callers hold mu
		return s.troubled && s.luck(4, fmt.Sprint(what, kind, pod.UID))
	}
	s.mu.Lock()
	slow, fails, loses := trouble("slow"), trouble("fails"), trouble("loses")
	s.mu.Unlock()
	if slow {
		select {
		case <-time.After(7 * time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.look()
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil || k.p.dead.Load() || fails {
		return errReply
	}
	h := s.history(pod.UID)
	if h.gone {
		return fmt.Errorf("%s %s: %w", what, podmill.RefOf(pod), podmill.ErrGone)
	}
	if do(h); loses {
		return errReply
	}
	return nil
}

func (s *sim) history(uid types.UID) *history {
	if s.histories[uid] == nil {
		s.histories[uid] = &history{}
	}
	return s.histories[uid]
}

// accept takes a status, and judges it against what was told before, and against what is true. Callers hold mu.
func (s *sim) accept(pod *corev1.Pod, next *corev1.PodStatus) {
	h, sp := s.history(pod.UID), s.pods[pod.UID]
	if sp == nil {
		s.breach(5, "a status of %s, which never was", pod.UID)
		return
	}
	if back := regress(h.last, next); back != "" {
		if sp.restated++; sp.restated >= sp.wants {
			s.breach(5, "the status of %s goes back: %s", sp.ref(), back)
		}
	}
	for _, list := range [][]corev1.ContainerStatus{next.InitContainerStatuses, next.ContainerStatuses} {
		for i := range list {
			s.judgeStatus(sp, &list[i])
			s.judgeHealth(sp, &list[i])
		}
	}
	if h.last == nil || h.last.Phase != next.Phase {
		s.note("%s is %s", sp.ref(), next.Phase)
	}
	was := h.over()
	if h.last = next.DeepCopy(); !was && h.over() {
		h.ends++
	}
}

// regress says what of a status goes back to what it was once.
func regress(last, next *corev1.PodStatus) string {
	if last == nil {
		return ""
	}
	if (last.Phase == corev1.PodSucceeded || last.Phase == corev1.PodFailed) && next.Phase != last.Phase {
		return fmt.Sprintf("phase %s after %s", next.Phase, last.Phase)
	}
	for i, old := range append(slices.Clone(last.InitContainerStatuses), last.ContainerStatuses...) {
		for j, now := range append(slices.Clone(next.InitContainerStatuses), next.ContainerStatuses...) {
			if i == j && old.Name == now.Name && now.RestartCount < old.RestartCount {
				return fmt.Sprintf("restart count %d of %s after %d", now.RestartCount, now.Name, old.RestartCount)
			}
		}
	}
	return ""
}

// judgeStatus judges what is told of a container: it is the pod's own, and how it ended is true or said to be unknown.
func (s *sim) judgeStatus(sp *simPod, c *corev1.ContainerStatus) {
	if c.ContainerID != "" {
		s.told(sp, c.Name, c.ContainerID)
	}
	for _, end := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
		if end == nil || end.ExitCode == 137 && end.Reason == "ContainerStatusUnknown" {
			continue
		}
		i := s.told(sp, c.Name, end.ContainerID)
		if i != nil && (i.state != podmill.StateExited || i.code != end.ExitCode) {
			s.breach(6, "%s#%d of %s is said to have ended with %d; it is %v, %d", i.name, i.attempt, sp.ref(), end.ExitCode, i.state, i.code)
		}
	}
}

// told returns the container that a status tells of.
func (s *sim) told(sp *simPod, name, id string) *instance {
	short, ok := strings.CutPrefix(id, "podmilltest://")
	i := s.instances[short]
	if !ok || i == nil || i.pod != sp.pod.UID || i.name != name {
		s.breach(5, "the status of %s tells of container %q as its %s", sp.ref(), id, name)
		return nil
	}
	return i
}

// judgeFinish judges that a pod is said to be done.
func (s *sim) judgeFinish(pod *corev1.Pod) {
	s.look()
	s.mu.Lock()
	defer s.mu.Unlock()
	sp := s.pods[pod.UID]
	if !s.honest || s.loose(sp) || sp.desired() && time.Since(sp.life().since) == 0 {
		return
	}
	s.each(pod.UID, func(i *instance) {
		if i.running() {
			s.breach(7, "FinishPod of %s, while %s#%d runs", sp.ref(), i.name, i.attempt)
		}
	})
	if mounted := s.mounted(pod.UID); len(mounted) > 0 {
		s.breach(7, "FinishPod of %s, while volumes are mounted: %v", sp.ref(), mounted)
	}
}

// poll reads the statuses that are on disk.
func (s *sim) poll() {
	if !s.files {
		return
	}
	sink, err := status.NewFileSink(filepath.Join(s.root, "status"))
	if err != nil {
		s.Fatal(err)
	}
	statuses, err := sink.Load()
	if err != nil {
		s.Fatal(err)
	}
	s.look()
	s.mu.Lock()
	defer s.mu.Unlock()
	for uid := range s.histories {
		if _, ok := statuses[uid]; !ok {
			delete(s.histories, uid)
		}
	}
	for uid, told := range statuses {
		if sp := s.pods[uid]; sp != nil {
			s.accept(sp.pod, &told)
		}
	}
}

// simVolumes are volumes in memory, which fail and are slow while there is trouble.
type simVolumes struct{ p *process }

// MountVolumes implements [podmill.VolumeMounter].
func (v *simVolumes) MountVolumes(ctx context.Context, pod *corev1.Pod) (map[string]podmill.Volume, error) {
	if err := v.trouble(ctx, "MountVolumes", pod.UID); err != nil {
		return nil, err
	}
	return v.p.mounts.MountVolumes(ctx, pod)
}

// UnmountVolumes implements [podmill.VolumeMounter].
func (v *simVolumes) UnmountVolumes(ctx context.Context, uid types.UID) error {
	if ctx.Err() == nil && !v.p.dead.Load() {
		v.p.judgeUnmount(uid)
	}
	if err := v.trouble(ctx, "UnmountVolumes", uid); err != nil {
		return err
	}
	return v.p.mounts.UnmountVolumes(ctx, uid)
}

// Cleanup unmounts what nobody keeps.
func (v *simVolumes) Cleanup(ctx context.Context, keep func(types.UID) bool) error {
	v.p.mu.Lock()
	var left []types.UID
	for uid := range v.p.pods {
		if len(v.p.mounted(uid)) > 0 {
			left = append(left, uid)
		}
	}
	v.p.mu.Unlock()
	for _, uid := range left {
		if keep(uid) {
			continue
		}
		if err := v.UnmountVolumes(ctx, uid); err != nil {
			return err
		}
	}
	return nil
}

func (v *simVolumes) trouble(ctx context.Context, what string, uid types.UID) error {
	s := v.p.sim
	s.mu.Lock()
	slow, fails := s.troubled && s.luck(5, what+"slow"+string(uid)), s.troubled && s.luck(4, what+string(uid))
	s.mu.Unlock()
	if slow {
		select {
		case <-time.After(3 * time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	switch {
	case v.p.dead.Load():
		return errDead
	case fails:
		return errReply
	}
	return ctx.Err()
}

// judgeUnmount judges that volumes are taken away.
func (s *sim) judgeUnmount(uid types.UID) {
	s.look()
	s.mu.Lock()
	defer s.mu.Unlock()
	sp := s.pods[uid]
	if !s.honest || s.loose(sp) {
		return
	}
	s.each(uid, func(i *instance) {
		if i.running() {
			s.breach(7, "the volumes of %s are unmounted, while %s#%d runs", sp.ref(), i.name, i.attempt)
		}
	})
}

// mounted returns the names of a pod's volumes that are ready.
func (s *sim) mounted(uid types.UID) (names []string) {
	if !s.files {
		return s.mounts.Mounted(uid)
	}
	dir := filepath.Join(s.root, "pods", string(uid), "volumes", "kubernetes.io~empty-dir")
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

package syncpod_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/syncpod"
)

var update = flag.Lookup("update") // of the plan's scripts

// rig is a syncer over the runtime in memory, with the smallest possible surroundings, and a worker for one pod. Everything that people or
// the status would be told is noted in the runtime's log, which so becomes the whole story.
type rig struct {
	*syncpod.Syncer
	t       *testing.T
	rt      *podmilltest.Runtime
	faulty  *podmilltest.FaultyRuntime
	objects *podmilltest.Objects
	volumes *podmilltest.VolumeMounter
	root    string
	opts    []syncpod.Option
	woken   chan struct{}

	mu       sync.Mutex
	known    map[types.UID]*podmill.RuntimePod
	reports  []string
	progress podmill.Progress
	seen     *podmill.RuntimePod
	pulling  chan struct{} // not nil: EnsureImage waits for it, deaf to its context
	parent   string        // the cgroup of the sandbox for which an image was last asked for
	blind    bool          // Observe sees no sandboxes
	timeless *time.Time    // not nil: Observe sees that containers ended then
	jumped   time.Time     // when the clock was set back, by ahead
	ahead    time.Duration
}

func newRig(t *testing.T, opts ...podmilltest.Option) *rig {
	t.Helper()
	r := &rig{
		t: t, rt: podmilltest.NewRuntime(opts...), objects: podmilltest.NewObjects(), woken: make(chan struct{}, 1),
		known: map[types.UID]*podmill.RuntimePod{},
	}
	t.Cleanup(r.rt.Close)
	r.faulty = podmilltest.Faulty(r.rt)
	r.root = t.TempDir()
	r.volumes = podmilltest.NewVolumeMounter(filepath.Join(r.root, "volumes"))
	r.opts = []syncpod.Option{
		syncpod.WithDirectories(filepath.Join(r.root, "lib"), filepath.Join(r.root, "log")),
		syncpod.WithEvents(r), syncpod.WithObjects(r.objects, r.objects), syncpod.WithVolumes(r.volumes),
		syncpod.WithWake(func(types.UID) { r.wake() }),
	}
	r.restart()
	return r
}

// restart is a new process of the agent: all that was in memory is gone.
func (r *rig) restart(opts ...syncpod.Option) {
	r.t.Helper()
	var err error
	r.Syncer, err = syncpod.New(syncpod.Config{Runtime: r.faulty, Cache: r, Sandboxes: r, Images: r, Reporter: r}, append(r.opts, opts...)...)
	if err != nil {
		r.t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.known)
}

func (r *rig) wake() {
	select {
	case r.woken <- struct{}{}:
	default:
	}
}

// work is the pod's worker: it syncs when something has happened, when a back-off is over and, after an error, a second later, until d has
// passed or the pod has finished.
func (r *rig) work(pod *corev1.Pod, d time.Duration) (finished bool) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), d)
	defer cancel()
	var events sync.WaitGroup
	defer events.Wait()
	events.Go(func() {
		_ = r.rt.StreamEvents(ctx, func() {}, func(e podmill.RuntimeEvent) { r.forget(e.Pod); r.wake() })
	})
	var retry <-chan time.Time
	r.forget(pod.UID)
	r.wake()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-r.woken:
		case <-retry:
		}
		retry = nil
		end, err := r.SyncPod(r.t.Context(), pod)
		if err != nil {
			r.rt.Log().Note("error: %s", firstLine(err))
			retry = time.After(time.Second)
		}
		if end != nil {
			if end.Reason != "" {
				r.rt.Log().Note("end: %s", end.Reason)
			} else {
				r.rt.Log().Note("finished")
			}
			cancel()
			return true
		}
	}
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// forget makes the next look at a pod a new one, as an event of the runtime does.
func (r *rig) forget(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, uid)
}

// Observe is the cache's.
func (r *rig) Observe(ctx context.Context, uid types.UID, fresh bool) (*podmill.RuntimePod, error) {
	r.mu.Lock()
	known := r.known[uid]
	r.mu.Unlock()
	if known != nil && !fresh {
		return known, nil
	}
	seen, err := r.faulty.InspectPod(ctx, uid)
	if err == nil {
		if r.blind {
			seen.Sandboxes = nil
		}
		for i := range seen.Containers {
			if c := &seen.Containers[i]; r.timeless != nil && c.State == podmill.StateExited {
				c.FinishedAt = *r.timeless
			}
			if c := &seen.Containers[i]; c.FinishedAt.Before(r.jumped) && !c.FinishedAt.IsZero() {
				c.FinishedAt = c.FinishedAt.Add(r.ahead)
			}
		}
		r.mu.Lock()
		r.known[uid] = seen
		r.mu.Unlock()
	}
	return seen, err
}

// Choose, Spec, Run, Stop and Remove are the sandboxes'.
func (r *rig) Choose(_ *corev1.Pod, seen *podmill.RuntimePod) (current *podmill.Sandbox, attempt uint32, why string) {
	for i := range seen.Sandboxes {
		if s := &seen.Sandboxes[i]; s.Ready {
			return s, s.Attempt, ""
		}
	}
	if len(seen.Sandboxes) > 0 {
		return nil, seen.Sandboxes[0].Attempt + 1, "no sandbox is ready"
	}
	return nil, 0, "there is no sandbox"
}

func (r *rig) Spec(pod *corev1.Pod, attempt uint32) (*podmill.SandboxSpec, error) {
	return &podmill.SandboxSpec{Pod: pod, Attempt: attempt, Hostname: pod.Name}, nil
}

func (r *rig) Run(ctx context.Context, spec *podmill.SandboxSpec) (*podmill.Sandbox, error) {
	id, err := r.faulty.RunSandbox(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &podmill.Sandbox{ID: id, Attempt: spec.Attempt, Ready: true, IPs: []string{"10.0.0.7"}}, nil
}

func (r *rig) Stop(ctx context.Context, seen *podmill.RuntimePod) error {
	for _, s := range seen.Sandboxes {
		if err := r.faulty.StopSandbox(ctx, s.ID); err != nil {
			return err
		}
	}
	return nil
}

func (r *rig) Remove(ctx context.Context, seen *podmill.RuntimePod) error {
	for _, s := range seen.Sandboxes {
		if err := r.faulty.RemoveSandbox(ctx, s.ID); err != nil {
			return err
		}
	}
	return nil
}

// PullSecrets and EnsureImage are the images'.
func (r *rig) PullSecrets(context.Context, *corev1.Pod) ([]podmill.ImageAuth, error) { return nil, nil }

func (r *rig) EnsureImage(
	ctx context.Context, _ *corev1.Pod, c *corev1.Container, spec *podmill.SandboxSpec, _ []podmill.ImageAuth,
) (*podmill.Image, error) {
	r.mu.Lock()
	r.parent = spec.CgroupParent
	r.mu.Unlock()
	if r.pulling != nil {
		<-r.pulling
		ctx = context.WithoutCancel(ctx)
	}
	image, err := r.faulty.InspectImage(ctx, c.Image)
	if !errors.Is(err, podmill.ErrNotFound) {
		return image, err
	}
	id, err := r.faulty.PullImage(ctx, &podmill.ImagePull{Image: c.Image})
	if err != nil {
		return nil, &podmill.ReasonError{Reason: "ErrImagePull", Message: err.Error(), Err: err}
	}
	return r.faulty.InspectImage(ctx, id)
}

// Report is the reporter's. It notes what is new.
func (r *rig) Report(_ context.Context, pod *corev1.Pod, seen *podmill.RuntimePod, p podmill.Progress) error {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(p.Waiting)) {
		parts = append(parts, name+" waits: "+p.Waiting[name].Reason)
	}
	if p.Termination != nil {
		parts = append(parts, "ending")
	}
	if p.Stopped {
		parts = append(parts, "stopped")
	}
	if p.Removed {
		parts = append(parts, "removed")
	}
	line := strings.Join(parts, ", ")
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.reports) == 0 && line != "" || len(r.reports) > 0 && line != r.reports[len(r.reports)-1] {
		r.rt.Log().Note("report %s/%s: %s", pod.Namespace, pod.Name, line)
	}
	r.reports, r.progress, r.seen = append(r.reports, line), p, seen
	return nil
}

// Event is the recorder's.
func (r *rig) Event(about corev1.ObjectReference, eventType, reason, message string) {
	r.rt.Log().Note("event %s", podmilltest.Event{About: about, Type: eventType, Reason: reason, Message: message})
}

// story is the log; what happened at the same moment is put in order, because it has none.
func (r *rig) story() string {
	lines := strings.Split(strings.TrimSpace(r.rt.Log().String()), "\n")
	slices.SortStableFunc(lines, func(a, b string) int {
		at, _, _ := strings.Cut(a, " ")
		bt, _, _ := strings.Cut(b, " ")
		if at == bt {
			return strings.Compare(a, b)
		}
		return 0
	})
	out := slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, "StreamEvents") })
	return strings.ReplaceAll(strings.Join(out, "\n"), r.root, "ROOT") + "\n"
}

// told compares the story with the golden one.
func (r *rig) told(name string) {
	r.t.Helper()
	file, got := filepath.Join("testdata", "stories", name+".txt"), r.story()
	if update.Value.String() == "true" {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			r.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		r.t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		r.t.Errorf("the story is another one (-want +got):\n%s", diff)
	}
}

// has reports that the story has a line with all of these words.
func (r *rig) has(words ...string) bool {
	return slices.ContainsFunc(strings.Split(r.story(), "\n"), func(line string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) })
	})
}

// end is how a pod ends after d.
func end(grace time.Duration) podmill.Termination {
	return podmill.Termination{Deadline: time.Now().Add(grace), GracePeriodSeconds: int64(grace / time.Second)}
}

// states returns what the runtime holds of a pod's containers: web#1 running.
func (r *rig) states(pod *corev1.Pod) (out []string) {
	seen, err := r.rt.InspectPod(r.t.Context(), pod.UID)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, c := range seen.Containers {
		out = append(out, fmt.Sprintf("%s#%d %s", c.Name, c.Attempt, c.State))
	}
	slices.Sort(out)
	return out
}

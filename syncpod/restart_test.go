package syncpod_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/syncpod"
)

// KEP-5532: all containers run again in the same sandbox, the init container first, and all counts rise.
func TestAllContainersRestart(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/job", podmilltest.Restart(corev1.RestartPolicyNever),
			podmilltest.InitContainer("setup", "img:1", podmilltest.Runs("exit 0")),
			podmilltest.Container("train", "img:1"), podmilltest.Container("watcher", "img:1", restartsAllOn(88)))
		r.work(pod, 10*time.Second)
		r.rt.KillProcess(pod.UID, "watcher", 88)
		r.work(pod, time.Minute)
		want := []string{"setup#1 exited", "train#1 running", "watcher#1 running"}
		if diff := cmp.Diff(want, r.states(pod)); diff != "" {
			t.Errorf("(-want +got):\n%s\n%s", diff, r.story())
		}
		if n := r.rt.Log().Count("RunSandbox"); n != 1 || len(r.seen.Sandboxes) != 1 {
			t.Errorf("%d sandboxes were run\n%s", n, r.story())
		}
		for name, w := range r.progress.Waiting {
			t.Errorf("%s still waits: %v", name, w)
		}
	})
}

// An agent that is restarted while all containers restart goes on, although the last status that was told says that they run: nothing of a pod that is
// never restarted is taken for lost.
func TestAllContainersRestartOverARestartOfTheAgent(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/job", podmilltest.Restart(corev1.RestartPolicyNever),
			podmilltest.InitContainer("setup", "img:1", podmilltest.Runs("sleep 3")),
			podmilltest.Container("train", "img:1"), podmilltest.Container("watcher", "img:1", restartsAllOn(88)))
		r.work(pod, 10*time.Second)
		r.rt.KillProcess(pod.UID, "watcher", 88)
		r.work(pod, time.Second) // the init container runs again
		pod.Status = corev1.PodStatus{
			Phase:                 corev1.PodRunning,
			InitContainerStatuses: []corev1.ContainerStatus{{Name: "setup", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}},
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "train", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
				{Name: "watcher", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			},
		}
		r.restart()
		if finished := r.work(pod, 10*time.Second); finished {
			t.Errorf("it is over\n%s", r.story())
		}
		if diff := cmp.Diff([]string{"setup#1 exited", "train#1 running", "watcher#1 running"}, r.states(pod)); diff != "" {
			t.Errorf("(-want +got):\n%s\n%s", diff, r.story())
		}
		r.rt.RemoveBehindBack(pod.UID, "train") // which is another thing, and the end of it
		r.restart()
		pod.Status.ContainerStatuses[0].RestartCount = 1
		r.work(pod, 10*time.Second)
		if diff := cmp.Diff([]string{"setup#1 exited", "watcher#1 running"}, r.states(pod)); diff != "" {
			t.Errorf("it is not kept that all have started (-want +got):\n%s\n%s", diff, r.story())
		}
	})
}

// Where it cannot be kept that all containers have to start, what tells that stays.
func TestNoRestartOfAllIsUnrecorded(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/job", podmilltest.Restart(corev1.RestartPolicyNever),
			podmilltest.Container("train", "img:1"), podmilltest.Container("watcher", "img:1", restartsAllOn(88)))
		r.work(pod, 10*time.Second)
		kept := filepath.Join(r.root, "lib", "pods", string(pod.UID), "lifecycle.json")
		if err := os.MkdirAll(filepath.Join(kept, "x"), 0o750); err != nil {
			t.Fatal(err)
		}
		r.rt.KillProcess(pod.UID, "watcher", 88)
		r.work(pod, 10*time.Second)
		if diff := cmp.Diff([]string{"watcher#0 exited"}, r.states(pod)); diff != "" {
			t.Errorf("(-want +got):\n%s\n%s", diff, r.story())
		}
		if err := os.RemoveAll(kept); err != nil {
			t.Fatal(err)
		}
		r.work(pod, 10*time.Second)
		if diff := cmp.Diff([]string{"train#1 running", "watcher#1 running"}, r.states(pod)); diff != "" {
			t.Errorf("(-want +got):\n%s\n%s", diff, r.story())
		}
	})
}

// restartsAllOn gives a container the rule that all restart when it ends with a code.
func restartsAllOn(code int32) podmilltest.ContainerOption {
	return func(c *corev1.Container) {
		never := corev1.ContainerRestartPolicyNever
		c.RestartPolicy = &never
		c.RestartPolicyRules = []corev1.ContainerRestartRule{{
			Action:    corev1.ContainerRestartRuleActionRestartAllContainers,
			ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{code}},
		}}
	}
}

// An ephemeral container shares the processes of its target, and waits where there is none.
func TestAnEphemeralContainerFindsItsTarget(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1"))
		r.work(pod, time.Second)
		debug := func(name, target string) podmilltest.PodOption {
			return func(pod *corev1.Pod) {
				pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, corev1.EphemeralContainer{
					EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: name, Image: "img:1"}, TargetContainerName: target,
				})
			}
		}
		pod = podmilltest.Edit(pod, debug("shell", "web"), debug("lost", "nobody"))
		r.work(pod, 5*time.Second)
		if diff := cmp.Diff([]string{"shell#0 running", "web#0 running"}, r.states(pod)); diff != "" {
			t.Errorf("(-want +got):\n%s\n%s", diff, r.story())
		}
		if got := r.progress.Waiting["lost"].Reason; got != "CreateContainerConfigError" {
			t.Errorf("lost waits for %q", got)
		}
		if !r.has("event Normal Started", "spec.ephemeralContainers{shell}") {
			t.Error(r.story())
		}
		r.rt.KillProcess(pod.UID, "shell", 1)
		r.work(pod, time.Minute)
		if got := r.states(pod); !slices.Contains(got, "shell#0 exited") {
			t.Errorf("%v: it ran again", got)
		}
	})
}

// backedOff are images of which none can be pulled before a time.
type backedOff struct {
	*rig
	until time.Time
	asked []time.Time
}

type later struct{ at time.Time }

func (later) Error() string        { return "back-off" }
func (e later) RetryAt() time.Time { return e.at }

func (b *backedOff) EnsureImage(
	ctx context.Context, pod *corev1.Pod, c *corev1.Container, spec *podmill.SandboxSpec, auths []podmill.ImageAuth,
) (*podmill.Image, error) {
	b.asked = append(b.asked, time.Now())
	if time.Now().Before(b.until) {
		return nil, &podmill.ReasonError{Reason: "ImagePullBackOff", Message: "Back-off pulling image", Err: later{b.until}}
	}
	return b.rig.EnsureImage(ctx, pod, c, spec, auths)
}

// B066: a pull is tried again when its back-off is over, to the moment, and not asked for before.
func TestAPullIsTriedAgainWhenItsBackOffIsOver(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		images := &backedOff{rig: r, until: time.Now().Add(300 * time.Second)}
		var err error
		r.Syncer, err = syncpod.New(syncpod.Config{Runtime: r.faulty, Cache: r, Sandboxes: r, Images: images, Reporter: r}, r.opts...)
		if err != nil {
			t.Fatal(err)
		}
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1"))
		r.work(pod, 200*time.Second)
		if got := r.progress.Waiting["web"]; got.Reason != "ImagePullBackOff" || got.Message != "Back-off pulling image" {
			t.Errorf("it waits for %v", got)
		}
		r.work(pod, 200*time.Second)
		if n := len(images.asked); n != 2 || !images.asked[1].Equal(images.until) {
			t.Errorf("asked at %v, want at once and at %v", images.asked, images.until)
		}
		if diff := cmp.Diff([]string{"web#0 running"}, r.states(pod)); diff != "" || strings.Contains(r.story(), "error:") {
			t.Errorf("%s\n%s", diff, r.story())
		}
	})
}

// KEP-5593: a container that crashes again and again waits no longer than the lower maximum says.
func TestALowerMaximumOfRestartDelays(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.restart(syncpod.WithMaxRestartDelay(2 * time.Second))
		r.work(podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1", podmilltest.Runs("exit 1"))), 20*time.Second)
		if n := r.rt.Log().Count(podmilltest.OpStartContainer); n < 9 {
			t.Errorf("%d starts in 20 s, want one every 2 s\n%s", n, r.story())
		}
	})
}

// A runtime that does not tell when a container ended, or tells nonsense, gives it no restarts without a wait.
func TestRestartsWaitWithoutATimeOfTheEnd(t *testing.T) {
	for name, at := range map[string]time.Time{"never": {}, "in 1970": time.Unix(0, 0), "in time to come": time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.timeless = &at
				r.work(podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1", podmilltest.Runs("sleep 1; exit 1"))), 90*time.Second)
				if n := r.rt.Log().Count(podmilltest.OpStartContainer); n != 5 || r.has("error:") {
					t.Errorf("%d starts in 90 s, want them after 0, 0, 10, 20 and 40 s\n%s", n, r.story())
				}
			})
		})
	}
}

func TestTheMaximumOfRestartDelaysHasBounds(t *testing.T) {
	cfg := syncpod.Config{Runtime: podmilltest.NewRuntime(), Cache: &rig{}, Sandboxes: &rig{}, Images: &rig{}, Reporter: &rig{}}
	for d, want := range map[time.Duration]bool{time.Second: true, 5 * time.Minute: true, time.Millisecond: false, time.Hour: false, -1: false} {
		if _, err := syncpod.New(cfg, syncpod.WithMaxRestartDelay(d)); (err == nil) != want {
			t.Errorf("%v: %v", d, err)
		}
	}
}

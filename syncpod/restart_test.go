package syncpod_test

import (
	"context"
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
		never := corev1.ContainerRestartPolicyNever
		pod := podmilltest.Pod("shop/job", podmilltest.Restart(corev1.RestartPolicyNever),
			podmilltest.InitContainer("setup", "img:1", podmilltest.Runs("exit 0")),
			podmilltest.Container("train", "img:1"),
			podmilltest.Container("watcher", "img:1", func(c *corev1.Container) {
				c.RestartPolicy = &never
				c.RestartPolicyRules = []corev1.ContainerRestartRule{{
					Action: corev1.ContainerRestartRuleActionRestartAllContainers,
					ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{
						Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{88},
					},
				}}
			}))
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

func TestTheMaximumOfRestartDelaysHasBounds(t *testing.T) {
	cfg := syncpod.Config{Runtime: podmilltest.NewRuntime(), Cache: &rig{}, Sandboxes: &rig{}, Images: &rig{}, Reporter: &rig{}}
	for d, want := range map[time.Duration]bool{time.Second: true, 5 * time.Minute: true, time.Millisecond: false, time.Hour: false, -1: false} {
		if _, err := syncpod.New(cfg, syncpod.WithMaxRestartDelay(d)); (err == nil) != want {
			t.Errorf("%v: %v", d, err)
		}
	}
}

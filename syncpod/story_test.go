package syncpod_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
)

// quiet makes what takes time take it, so that there is an order in what happens, and has images here.
var quiet = []podmilltest.Option{
	podmilltest.WithImages(podmilltest.Image{Ref: "img:1"}, podmilltest.Image{Ref: "img:2"}),
	podmilltest.WithLatency(podmilltest.OpStopSandbox, 50*time.Millisecond),
	podmilltest.WithLatency(podmilltest.OpRemoveSandbox, 30*time.Millisecond),
	podmilltest.WithLatency(podmilltest.OpRemoveContainer, 20*time.Millisecond),
	podmilltest.WithLatency(podmilltest.OpRunSandbox, 260*time.Millisecond),
	podmilltest.WithLatency(podmilltest.OpCreateContainer, 10*time.Millisecond),
	podmilltest.WithLatency(podmilltest.OpStartContainer, 140*time.Millisecond),
}

// TestStories are pods' lives: what the runtime was asked, what people were told, and when.
func TestStories(t *testing.T) {
	for _, story := range []struct {
		name    string
		scripts []podmilltest.Option
		live    func(r *rig)
	}{
		{"start", []podmilltest.Option{podmilltest.WithScript("migrate", "sleep 2")}, func(r *rig) {
			pod := podmilltest.Pod("shop/cart", podmilltest.InitContainer("migrate", "img:1"),
				podmilltest.Container("web", "img:1"), podmilltest.Container("log", "img:1"))
			r.work(pod, time.Minute)
		}},
		{"job", []podmilltest.Option{podmilltest.WithScript("job", "sleep 3; exit 1", "sleep 3")}, func(r *rig) {
			pod := podmilltest.Pod("shop/job", podmilltest.Container("job", "img:1"), podmilltest.Restart(corev1.RestartPolicyOnFailure))
			if !r.work(pod, time.Minute) {
				r.t.Error("the job does not finish")
			}
			r.finish(pod, end(30*time.Second))
		}},
		// B045
		{"crash-loop", []podmilltest.Option{podmilltest.WithScript("web", "sleep 1; exit 1")}, func(r *rig) {
			pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1"))
			r.work(pod, 2*time.Minute)
		}},
		{"sidecar", []podmilltest.Option{podmilltest.WithScript("job", "sleep 5")}, func(r *rig) {
			pod := podmilltest.Pod("shop/job", podmilltest.Sidecar("proxy", "img:1"), podmilltest.InitContainer("migrate", "img:1"),
				podmilltest.Container("job", "img:1"), podmilltest.Restart(corev1.RestartPolicyNever))
			r.work(pod, time.Second)
			r.rt.KillProcess(pod.UID, "proxy", 1)
			r.rt.KillProcess(pod.UID, "migrate", 0)
			r.work(pod, time.Minute)
			r.finish(pod, end(30*time.Second))
		}},
		// B025: another image replaces just that container.
		{"another-image", []podmilltest.Option{podmilltest.WithScript("web", "trap 'sleep 3; exit 0' TERM; sleep inf & wait")}, func(r *rig) {
			pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1"), podmilltest.Container("log", "img:1"))
			r.work(pod, 10*time.Second)
			r.work(podmilltest.Edit(pod, func(p *corev1.Pod) { p.Spec.Containers[0].Image = "img:2" }), 10*time.Second)
		}},
		{"sandbox-dies", nil, func(r *rig) {
			pod := podmilltest.Pod("shop/cart", podmilltest.InitContainer("migrate", "img:1", podmilltest.Runs("sleep 1")),
				podmilltest.Container("web", "img:1"))
			r.work(pod, 10*time.Second)
			r.rt.KillSandbox(pod.UID)
			r.work(pod, 10*time.Second)
		}},
		// B043
		{"unknown-state", nil, func(r *rig) {
			pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1"))
			r.work(pod, 10*time.Second)
			r.rt.LoseTrack(pod.UID, "web")
			r.work(pod, 10*time.Second)
		}},
		// One container's failure stops no other, and is over when its cause is.
		{"missing-secret", nil, func(r *rig) {
			pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1", func(c *corev1.Container) {
				c.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "keys"}}}}
			}), podmilltest.Container("log", "img:1"))
			r.work(pod, 2500*time.Millisecond)
			r.objects.SetSecret(&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "keys"}, Data: map[string][]byte{"TOKEN": nil, "1bad": nil},
			})
			r.work(pod, 5*time.Second)
			r.rt.KillProcess(pod.UID, "web", 1) // which has nothing to do with the secret
			r.work(pod, 5*time.Second)
		}},
		// A reply of every kind is lost, and a name is taken: the next try looks first.
		{"lost-replies", nil, func(r *rig) {
			lost := errors.New("connection reset")
			for _, op := range []podmilltest.Op{podmilltest.OpRunSandbox, podmilltest.OpCreateContainer, podmilltest.OpStartContainer} {
				r.faulty.Add(podmilltest.Fault{On: op, Times: 1, Effect: podmilltest.LoseReply(lost)})
			}
			pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1"))
			r.work(pod, 10*time.Second)
		}},
		// B074, B013: containers are all stopped before the sandbox, and only then is the pod reported as stopped.
		{"termination", []podmilltest.Option{
			podmilltest.WithScript("web", "trap 'sleep 4; exit 0' TERM; sleep inf & wait"),
			podmilltest.WithScript("deaf", "trap '' TERM; sleep inf"),
		}, func(r *rig) {
			pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1"), podmilltest.Container("deaf", "img:1"))
			r.work(pod, 10*time.Second)
			r.finish(pod, end(10*time.Second))
		}},
		// A deadline that comes nearer cancels the call, and the next one goes on with it.
		{"termination-hastened", []podmilltest.Option{podmilltest.WithScript("deaf", "trap '' TERM; sleep inf")}, func(r *rig) {
			pod := podmilltest.Pod("shop/cart", podmilltest.Container("deaf", "img:1"))
			r.work(pod, 10*time.Second)
			ctx, cancel := context.WithTimeout(r.t.Context(), 5*time.Second)
			defer cancel()
			if err := r.SyncTerminatingPod(ctx, pod, end(120*time.Second)); !errors.Is(err, context.DeadlineExceeded) {
				r.t.Errorf("error = %v", err)
			}
			r.finish(pod, end(10*time.Second))
		}},
		// After a restart of the agent the pod, wanted by nobody, has what was left of its grace: the deadline is on disk.
		{"termination-after-restart", []podmilltest.Option{podmilltest.WithScript("deaf", "trap '' TERM; sleep inf")}, func(r *rig) {
			pod := podmilltest.Pod("shop/cart", podmilltest.Container("deaf", "img:1"), podmilltest.Grace(30*time.Second))
			r.work(pod, 10*time.Second)
			ctx, cancel := context.WithTimeout(r.t.Context(), 5*time.Second)
			defer cancel()
			_ = r.SyncTerminatingPod(ctx, pod, end(30*time.Second))
			time.Sleep(5 * time.Second)
			r.restart()
			seen, _ := r.rt.InspectPod(r.t.Context(), pod.UID)
			if err := r.SyncTerminatingRuntimePod(r.t.Context(), seen); err != nil {
				r.t.Error(err)
			}
		}},
		// A manifest that was removed while the agent was down: the grace is in the containers' annotations.
		{"orphan", []podmilltest.Option{podmilltest.WithScript("deaf", "trap '' TERM; sleep inf")}, func(r *rig) {
			pod := podmilltest.Pod("shop/cart", podmilltest.Container("deaf", "img:1"), podmilltest.Grace(7*time.Second))
			r.work(pod, 10*time.Second)
			r.restart()
			seen, _ := r.rt.InspectPod(r.t.Context(), pod.UID)
			if err := r.SyncTerminatingRuntimePod(r.t.Context(), seen); err != nil {
				r.t.Error(err)
			}
		}},
		{"sidecars-stop-last", []podmilltest.Option{
			podmilltest.WithScript("web", "trap 'sleep 4; exit 0' TERM; sleep inf & wait"),
			podmilltest.WithScript("mesh", "trap 'sleep 2; exit 0' TERM; sleep inf & wait"),
		}, func(r *rig) {
			pod := podmilltest.Pod("shop/cart", podmilltest.Sidecar("proxy", "img:1"), podmilltest.Sidecar("mesh", "img:1"),
				podmilltest.Container("web", "img:1"))
			r.work(pod, 10*time.Second)
			r.finish(pod, end(30*time.Second))
		}},
	} {
		t.Run(story.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, append(story.scripts, quiet...)...)
				story.live(r)
				r.told(story.name)
			})
		})
	}
}

// finish ends a pod and removes it.
func (r *rig) finish(pod *corev1.Pod, t podmill.Termination) {
	r.t.Helper()
	if err := r.SyncTerminatingPod(r.t.Context(), pod, t); err != nil {
		r.t.Error(err)
	}
	if err := r.SyncTerminatedPod(r.t.Context(), pod); err != nil {
		r.t.Error(err)
	}
}

package syncpod_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/syncpod"
)

// slowly runs a test in virtual time, with a runtime in which a sandbox takes a second.
func slowly(t *testing.T, test func(t *testing.T, r *rig), registry ...podmilltest.RemoteImage) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		opts := append(slices.Clone(quiet), podmilltest.WithLatency(podmilltest.OpRunSandbox, time.Second), podmilltest.WithRegistry(registry...))
		test(t, newRig(t, opts...))
	})
}

// far is an image that takes its time.
func far(name string, takes time.Duration) podmilltest.RemoteImage {
	return podmilltest.RemoteImage{Image: podmilltest.Image{Ref: name}, Takes: takes}
}

// noSandbox is that there is none, after d.
func noSandbox(d time.Duration, times int) podmilltest.Fault {
	return podmilltest.Fault{On: podmilltest.OpRunSandbox, Times: times, Effect: podmilltest.Effect{
		Name: "fails", Call: func(context.Context, func() error) error {
			time.Sleep(d)
			return errors.New("no network")
		},
	}}
}

// A sandbox and images that take a second each take a second together, the images that are mounted among them once the container's own is there. A pull is told
// of the sandbox as it will be.
func TestImagesComeBesideTheSandbox(t *testing.T) {
	slowly(t, func(t *testing.T, r *rig) {
		r.restart(syncpod.WithCgroups(&cgroups{}))
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "far:1"), podmilltest.Container("log", "far:2", subPath("tools", "/tools", "", "")),
			podmilltest.Volume("tools", corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "far:3"}}))
		if _, err := r.SyncPod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		if !r.has("1.000s CreateContainer", "web#0") || !r.has("1.200s CreateContainer", "log#0") {
			t.Errorf("web is not created after a second, or log not 200ms later\n%s", r.story())
		}
		if r.parent != "/kubepods/pod" {
			t.Errorf("the last pull was told of the cgroup %q", r.parent)
		}
	}, far("far:1", time.Second), far("far:2", 600*time.Millisecond), far("far:3", 600*time.Millisecond))
}

// A sandbox that fails does not wait for a pull, which is called off, and is the one thing that is told. Until there is one, nothing more is
// asked for.
func TestAPullIsCalledOffWithoutASandbox(t *testing.T) {
	for name, takes := range map[string]time.Duration{"is under way": 10 * time.Minute, "has failed": 100 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			image := far("far:1", takes)
			if takes < time.Second {
				image.Err = errors.New("no such image")
			}
			slowly(t, func(t *testing.T, r *rig) {
				began := time.Now()
				r.faulty.Add(noSandbox(500*time.Millisecond, 2))
				pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "far:1"), podmilltest.Container("log", "img:1"))
				for i := range 2 {
					_, err := r.SyncPod(t.Context(), pod)
					want := fmt.Sprintf("sync pod shop/cart(%s): no network", pod.UID)
					if took := time.Since(began); err == nil || err.Error() != want || took != time.Duration(i+1)*500*time.Millisecond {
						t.Errorf("after %v: %v", took, err)
					}
				}
				if n := r.rt.Log().Count(podmilltest.OpPullImage); n != 1 {
					t.Errorf("%d pulls, want one beside the first sandbox", n)
				}
				if len(r.progress.Waiting) > 0 || r.has("event Warning") {
					t.Errorf("told of containers: %v\n%s", r.progress.Waiting, r.story())
				}
				_, _ = r.SyncPod(t.Context(), pod)
				if got := r.states(pod); !slices.Contains(got, "log#0 running") || slices.Contains(got, "web#0 running") != (image.Err == nil) {
					t.Errorf("with a sandbox: %v\n%s", got, r.story())
				}
			}, image)
		})
	}
}

func TestAPullThatTakesLongDelaysNoOtherContainer(t *testing.T) {
	slowly(t, func(t *testing.T, r *rig) {
		r.work(podmilltest.Pod("shop/cart", podmilltest.Container("web", "far:1"), podmilltest.Container("log", "img:1")), time.Second)
		if !r.has("1.010s StartContainer", "log#0") || !r.has("600.010s StartContainer", "web#0") {
			t.Error(r.story())
		}
	}, far("far:1", 10*time.Minute))
}

// An image that is gone when its container is created is a failure of that, and the next try brings it.
func TestAnImageThatGoesWhileTheSandboxComes(t *testing.T) {
	slowly(t, func(t *testing.T, r *rig) {
		r.faulty.Add(podmilltest.Fault{On: podmilltest.OpRunSandbox, Effect: podmilltest.Effect{
			Name: "has the image removed", Call: func(ctx context.Context, call func() error) error {
				return errors.Join(call(), r.rt.RemoveImage(ctx, "img:1"))
			},
		}})
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1"))
		r.work(pod, 10*time.Second)
		if !slices.ContainsFunc(r.reports, func(s string) bool { return strings.Contains(s, "web waits: CreateContainerError") }) || !r.has("event Warning Failed") {
			t.Errorf("it was not told\n%s", r.story())
		}
		if diff := cmp.Diff([]string{"web#0 running"}, r.states(pod)); diff != "" || r.rt.Log().Count(podmilltest.OpPullImage) != 1 {
			t.Errorf("%s\n%s", diff, r.story())
		}
	})
}

package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/volume/internal/patience"
)

// B076: the error names every volume that is not ready, nothing is half-made, and the pod waits.
func TestMissingObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.configMap("there", map[string]string{"a": "1"})
		pod := podmilltest.Pod("a", volume("one", configMapSource("gone")), volume("two", secretSource("gone")), volume("ok", configMapSource("there")),
			volume("key", configMapSource("there", corev1.KeyToPath{Key: "b", Path: "b"})),
			volume("both", corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: named("gone")}},
				{Secret: &corev1.SecretProjection{LocalObjectReference: named("gone")}},
			}}}))
		start := time.Now()
		_, err := r.MountVolumes(t.Context(), pod)
		if waited := time.Since(start); waited != 2*time.Minute+3*time.Second {
			t.Errorf("waited %v, the kubelet's 2m3s are due", waited)
		}
		var notReady *NotReadyError
		if !errors.As(err, &notReady) || !errors.Is(err, podmill.ErrNotFound) {
			t.Fatalf("error %v", err)
		}
		if diff := cmp.Diff([]string{"one", "two", "key", "both"}, notReady.Volumes); diff != "" {
			t.Errorf("volumes (-want +got):\n%s", diff)
		}
		want := fmt.Sprintf("mount volumes of pod %s: unmounted volumes=[one two key both]: [", podmill.RefOf(pod)) +
			`MountVolume.SetUp failed for volume "one" : configmap "gone" not found, ` +
			`MountVolume.SetUp failed for volume "two" : secret "gone" not found, ` +
			`MountVolume.SetUp failed for volume "key" : configmap references non-existent config key: b, ` +
			`MountVolume.SetUp failed for volume "both" : [configmap "gone" not found, secret "gone" not found]]`
		if diff := cmp.Diff(want, err.Error()); diff != "" {
			t.Errorf("error (-want +got):\n%s", diff)
		}
		for _, path := range r.list("pods") {
			for _, name := range []string{"/one", "/two", "/key", "/both"} {
				if strings.HasSuffix(path, name) {
					t.Errorf("half-made: %s", path)
				}
			}
		}
	})
}

func TestWaitEndsWhenTheObjectComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = r.objects.WatchObjects(ctx, r.Changed) }()
		pod := podmilltest.Pod("a", volume("v", configMapSource("late")), volume("w", secretSource("late")), volume("x", configMapSource("late")))
		done := make(chan error, 1)
		go func() {
			_, err := r.MountVolumes(t.Context(), pod)
			done <- err
		}()
		time.Sleep(40 * time.Second) // in the middle of a long pause
		start := time.Now()
		r.configMap("late", map[string]string{"a": "1"})
		r.configMap("other", nil)
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("not all volumes can be ready, and the wait has ended: %v", err)
		default:
		}
		r.secret("late", nil)
		if err := <-done; err != nil || time.Since(start) > 0 {
			t.Errorf("after %v: %v, want nil at once", time.Since(start), err)
		}
	})
}

func TestWaitWithoutNotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var at []time.Duration
		start := time.Now()
		r.opts = []Option{WithObserver(Observer{SetUp: func(podmill.PodRef, string, time.Duration, error) { at = append(at, time.Since(start)) }})}
		r.restart()
		time.AfterFunc(10*time.Second, func() { r.configMap("late", nil) })
		r.mount(podOf(configMapSource("late")))
		want := []time.Duration{0, 500 * time.Millisecond, 1500 * time.Millisecond, 3500 * time.Millisecond, 7500 * time.Millisecond, 15500 * time.Millisecond}
		if diff := cmp.Diff(want, at); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
	})
}

func TestWaitEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		_, err := r.MountVolumes(ctx, podOf(configMapSource("gone")))
		if err == nil || time.Since(start) != 3*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

// busy is a plugin that gets on with each of its volumes for a time, and then hangs unless that is all it takes.
type busy struct {
	slow
	works time.Duration
	hangs bool
}

func (b busy) SetUp(ctx context.Context, m Mount) (podmill.Volume, error) {
	for end := time.Now().Add(b.works); time.Now().Before(end); patience.Renew(ctx) {
		select {
		case <-time.After(time.Minute):
		case <-ctx.Done():
			return podmill.Volume{}, ctx.Err()
		}
	}
	if b.hangs {
		<-ctx.Done()
		return podmill.Volume{}, ctx.Err()
	}
	return b.slow.SetUp(ctx, m)
}

// What takes long and gets on with it, as a walk through millions of files does, is waited for. It is not when it hangs, nor when the pod has gone.
func TestPatienceIsWithWhatGetsOn(t *testing.T) {
	for name, tt := range map[string]struct {
		plugin  busy
		context time.Duration // of the caller
		took    time.Duration
		err     error
	}{
		"it takes hours":      {busy{works: 10 * time.Hour}, 24 * time.Hour, 10 * time.Hour, nil},
		"then it hangs":       {busy{works: time.Hour, hangs: true}, 24 * time.Hour, time.Hour + 2*time.Minute + 3*time.Second, context.DeadlineExceeded},
		"the pod is deleted":  {busy{works: 10 * time.Hour}, time.Hour + time.Second, time.Hour + time.Second, context.DeadlineExceeded},
		"it hangs altogether": {busy{hangs: true}, 24 * time.Hour, 2*time.Minute + 3*time.Second, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, WithPlugins(tt.plugin))
				ctx, cancel := context.WithTimeout(t.Context(), tt.context)
				defer cancel()
				start := time.Now()
				_, err := r.MountVolumes(ctx, podOf(nfs()))
				if took := time.Since(start); took != tt.took || !errors.Is(err, tt.err) {
					t.Errorf("after %v: %v, want %v after %v", took, err, tt.err, tt.took)
				}
			})
		})
	}
}

// slow is a plugin whose volumes take their time.
type slow struct {
	setUp, tearDown time.Duration
}

func (slow) Name() string                  { return "test/slow" }
func (slow) Handles(v *corev1.Volume) bool { return v.NFS != nil }
func (s slow) SetUp(ctx context.Context, m Mount) (podmill.Volume, error) {
	select {
	case <-time.After(s.setUp):
	case <-ctx.Done():
		return podmill.Volume{}, ctx.Err()
	}
	return podmill.Volume{HostPath: m.Path()}, os.MkdirAll(m.Path(), 0o755)
}
func (s slow) TearDown(_ context.Context, p Place) error {
	time.Sleep(s.tearDown)
	return os.Remove(p.Path())
}

func nfs() corev1.VolumeSource { return corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{}} }

func TestVolumesAreMadeSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, WithPlugins(slow{time.Minute, time.Second}))
		pod := podmilltest.Pod("a", volume("v", nfs()), volume("w", nfs()), volume("x", nfs()))
		start := time.Now()
		if path := r.mount(pod); path != r.place(pod, "test~slow", "v") {
			t.Errorf("at %s", path)
		}
		if took := time.Since(start); took != time.Minute {
			t.Errorf("made in %v, want 1m", took)
		}
		start = time.Now()
		r.unmount(pod)
		if took := time.Since(start); took != time.Second {
			t.Errorf("taken away in %v, want 1s", took)
		}
	})
}

// What is refused for good ends the wait for what may come, but not what is under way.
func TestRefusalEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, WithPlugins(slow{setUp: time.Second}))
		pod := podmilltest.Pod("a", volume("never", corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{}}), volume("late", configMapSource("late")), volume("slow", nfs()))
		start := time.Now()
		_, err := r.MountVolumes(t.Context(), pod)
		if took := time.Since(start); took != time.Second {
			t.Errorf("took %v, want 1s", took)
		}
		if err == nil || !strings.Contains(err.Error(), "unmounted volumes=[never late]: ") {
			t.Errorf("error %v", err)
		}
	})
}

// B085, and the contract: while a pod's volumes are taken away none is made, and afterwards a pod of that UID starts anew.
func TestNoMountWhileUnmounting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, WithPlugins(slow{time.Second, time.Minute}))
		pod := podOf(nfs())
		r.mount(pod)
		done := make(chan error, 1)
		go func() { done <- r.UnmountVolumes(t.Context(), pod.UID) }()
		time.Sleep(time.Second)
		if _, err := r.MountVolumes(t.Context(), pod); !errors.Is(err, ErrUnmounting) {
			t.Errorf("mount meanwhile: %v, want %v", err, ErrUnmounting)
		}
		must(t, <-done)
		if left := r.list("pods"); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		r.mount(pod)
	})
}

func TestUnmountWaitsForTheMountUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, WithPlugins(slow{setUp: time.Minute}))
		pod := podOf(nfs())
		go func() { _, _ = r.MountVolumes(t.Context(), pod) }()
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.UnmountVolumes(ctx, pod.UID); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("unmount: %v", err)
		}
		must(t, r.UnmountVolumes(t.Context(), pod.UID))
		if left := r.list("pods"); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// A clean-up that began with an older idea of what is wanted does not touch what was mounted since.
func TestCleanupLeavesMountedVolumes(t *testing.T) {
	r := newRig(t)
	pod := podOf(emptyDirSource(""))
	path := r.mount(pod)
	must(t, r.Cleanup(t.Context(), func(types.UID) bool { return false }))
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	r.unmount(pod)
}

func TestUIDMustBeAName(t *testing.T) {
	r := newRig(t)
	for _, uid := range []types.UID{"", ".", "..", "../x", "a/b", "/"} {
		pod := podmilltest.Edit(podOf(emptyDirSource("")), podmilltest.UID(uid))
		if _, err := r.MountVolumes(t.Context(), pod); err == nil {
			t.Errorf("mounted volumes of pod %q", uid)
		}
		if err := r.UnmountVolumes(t.Context(), uid); err == nil {
			t.Errorf("unmounted volumes of pod %q", uid)
		}
	}
	pod := podmilltest.Pod("a", volume("../../x", emptyDirSource("")))
	if _, err := r.MountVolumes(t.Context(), pod); err == nil {
		t.Error("mounted volume ../../x")
	}
}

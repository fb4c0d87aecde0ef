package podmilltest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// VolumeMounterEnv is a mounter to be tested, which has nothing mounted, and what it is tested with.
type VolumeMounterEnv struct {
	Mounter podmill.VolumeMounter
	// Volumes adds volumes to a pod, at least one, which the mounter can make ready.
	Volumes PodOption
	// Broken adds a volume named "broken", which the mounter cannot make ready. Nil skips the tests that need it.
	Broken PodOption
	// Restart returns a mounter as another process would make it, which knows what is there by that alone. Nil skips.
	Restart func(t *testing.T) podmill.VolumeMounter
	// Exists reports that a volume is still there; it looks for HostPath unless it is given.
	Exists func(v podmill.Volume) bool
}

// VolumeMounterTest holds a mounter to the contract of [podmill.VolumeMounter] and, where it is one, of [podmill.SubPathMounter]. It makes an environment for each of its subtests.
func VolumeMounterTest(t *testing.T, newEnv func(t *testing.T) VolumeMounterEnv) {
	for _, test := range []struct {
		name string
		run  func(k *volumeKit)
	}{
		{"MountIsIdempotent", testVolumesMountIsIdempotent},
		{"UnmountTakesAllAway", testVolumesUnmountTakesAllAway},
		{"UnmountIsIdempotent", testVolumesUnmountIsIdempotent},
		{"BrokenVolumeIsNamed", testVolumesBrokenVolumeIsNamed},
		{"UnmountAfterRestart", testVolumesUnmountAfterRestart},
		{"MountAfterRestart", testVolumesMountAfterRestart},
		{"CancelledContext", testVolumesCancelledContext},
		{"SubPath", testVolumesSubPath},
		{"SubPathStaysInside", testVolumesSubPathStaysInside},
	} {
		t.Run(test.name, func(t *testing.T) {
			k := &volumeKit{T: t, VolumeMounterEnv: newEnv(t)}
			if k.Exists == nil {
				k.Exists = func(v podmill.Volume) bool {
					_, err := os.Lstat(v.HostPath)
					return !errors.Is(err, fs.ErrNotExist)
				}
			}
			test.run(k)
		})
	}
}

// shortPatience is how long a volume that cannot be made ready is waited for.
const shortPatience = time.Second

type volumeKit struct {
	*testing.T
	VolumeMounterEnv
}

// pod returns a pod whose container mounts all its volumes: one that nobody mounts need not be made ready.
func (k *volumeKit) pod(name string, opts ...PodOption) *corev1.Pod {
	pod := Pod("default/"+name, append([]PodOption{Container("c", "i"), k.Volumes}, opts...)...)
	for _, v := range pod.Spec.Volumes {
		VolumeMount(v.Name, "/"+v.Name)(&pod.Spec.Containers[0])
	}
	return pod
}

// mount mounts a pod's volumes and checks that each is there.
func (k *volumeKit) mount(pod *corev1.Pod) map[string]podmill.Volume {
	k.Helper()
	volumes, err := k.Mounter.MountVolumes(k.Context(), pod)
	if err != nil {
		k.Fatalf("MountVolumes: %v", err)
	}
	if len(volumes) != len(pod.Spec.Volumes) {
		k.Errorf("MountVolumes returned %d volumes, want %d", len(volumes), len(pod.Spec.Volumes))
	}
	for _, v := range pod.Spec.Volumes {
		if mounted, ok := volumes[v.Name]; !ok || mounted.HostPath == "" && mounted.Image == "" || !k.Exists(mounted) {
			k.Errorf("volume %s is %+v when it is mounted, want a path that exists", v.Name, mounted)
		}
	}
	return volumes
}

func (k *volumeKit) unmount(pod *corev1.Pod) {
	k.Helper()
	if err := k.Mounter.UnmountVolumes(k.Context(), pod.UID); err != nil {
		k.Fatalf("UnmountVolumes: %v", err)
	}
}

// gone fails the test if one of the volumes is still there.
func (k *volumeKit) gone(volumes map[string]podmill.Volume) {
	k.Helper()
	for name, v := range volumes {
		if k.Exists(v) {
			k.Errorf("volume %s is still there after UnmountVolumes: %+v", name, v)
		}
	}
}

func testVolumesMountIsIdempotent(k *volumeKit) {
	pod := k.pod("a")
	first := k.mount(pod)
	if diff := gocmp.Diff(first, k.mount(pod)); diff != "" {
		k.Errorf("mounted again, the volumes differ (-first +second):\n%s", diff)
	}
}

func testVolumesUnmountTakesAllAway(k *volumeKit) {
	a, b := k.pod("a"), k.pod("b")
	ofA, ofB := k.mount(a), k.mount(b)
	k.unmount(a)
	k.gone(ofA)
	for name, v := range ofB {
		if !k.Exists(v) {
			k.Errorf("volume %s of another pod went with them", name)
		}
	}
	k.mount(a) // a pod of that UID may come back
}

func testVolumesUnmountIsIdempotent(k *volumeKit) {
	pod := k.pod("a")
	k.unmount(pod) // never mounted
	volumes := k.mount(pod)
	k.unmount(pod)
	k.unmount(pod)
	k.gone(volumes)
}

func testVolumesBrokenVolumeIsNamed(k *volumeKit) {
	if k.Broken == nil {
		k.Skip("the environment has no broken volume")
	}
	pod := k.pod("a", k.Broken)
	ctx, cancel := context.WithTimeout(k.Context(), shortPatience)
	defer cancel()
	_, err := k.Mounter.MountVolumes(ctx, pod)
	if err == nil || !strings.Contains(err.Error(), "broken") {
		k.Errorf("MountVolumes: error %v, want one that names the volume that is not ready", err)
	}
	good := k.mount(k.pod("a"))
	k.unmount(pod)
	k.gone(good)
}

func testVolumesUnmountAfterRestart(k *volumeKit) {
	if k.Restart == nil {
		k.Skip("the environment has no restart")
	}
	pod := k.pod("a")
	volumes := k.mount(pod)
	k.Mounter = k.Restart(k.T)
	k.unmount(pod)
	k.gone(volumes)
}

func testVolumesMountAfterRestart(k *volumeKit) {
	if k.Restart == nil {
		k.Skip("the environment has no restart")
	}
	pod := k.pod("a")
	before := k.mount(pod)
	k.Mounter = k.Restart(k.T)
	if diff := gocmp.Diff(before, k.mount(pod)); diff != "" {
		k.Errorf("mounted after a restart, the volumes differ (-before +after):\n%s", diff)
	}
}

func testVolumesCancelledContext(k *volumeKit) {
	if k.Broken == nil {
		k.Skip("the environment has no broken volume")
	}
	ctx, cancel := context.WithCancel(k.Context())
	cancel()
	if _, err := k.Mounter.MountVolumes(ctx, k.pod("a", k.Broken)); err == nil {
		k.Error("MountVolumes of a volume that is not ready, with a context that has ended, succeeded")
	}
}

// subPath returns a part of a pod's first volume.
func (k *volumeKit) subPath(pod *corev1.Pod, path string) (string, error) {
	mounter, ok := k.Mounter.(podmill.SubPathMounter)
	if !ok {
		k.Skip("the mounter is no SubPathMounter")
	}
	return mounter.MountSubPath(k.Context(), pod, podmill.SubPath{Container: "c", Volume: pod.Spec.Volumes[0].Name, Path: path})
}

func testVolumesSubPath(k *volumeKit) {
	pod := k.pod("a")
	if path, err := k.subPath(pod, "new/directory"); err == nil {
		k.Errorf("MountSubPath of a volume that is not mounted = %q, want an error", path)
	}
	k.mount(pod)
	part, err := k.subPath(pod, "new/directory")
	if err != nil || !k.Exists(podmill.Volume{HostPath: part}) {
		k.Fatalf("MountSubPath = %q, %v, want a path that exists", part, err)
	}
	if k.Restart != nil {
		k.Mounter = k.Restart(k.T)
		k.mount(pod)
	}
	if again, err := k.subPath(pod, "new/directory"); err != nil || again != part {
		k.Errorf("MountSubPath again = %q, %v, want %q", again, err, part)
	}
	k.unmount(pod)
	if k.Exists(podmill.Volume{HostPath: part}) {
		k.Error("a part is still there after UnmountVolumes")
	}
}

func testVolumesSubPathStaysInside(k *volumeKit) {
	pod := k.pod("a")
	k.mount(pod)
	defer k.unmount(pod)
	for _, outside := range []string{"..", "../b", "a/../../b", "/etc"} {
		if path, err := k.subPath(pod, outside); err == nil {
			k.Errorf("MountSubPath of %q = %q, want an error", outside, path)
		}
	}
}

package syncpod_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/syncpod"
)

// specs keeps what a runtime is asked for.
type specs struct {
	podmill.ContainerRunner
	mu         sync.Mutex // containers are started side by side
	containers []*podmill.ContainerSpec
}

func (s *specs) CreateContainer(ctx context.Context, spec *podmill.ContainerSpec) (string, error) {
	s.mu.Lock()
	s.containers = append(s.containers, spec)
	s.mu.Unlock()
	return s.ContainerRunner.CreateContainer(ctx, spec)
}

// asked makes the runtime's container calls go through what it returns.
func (r *rig) asked(opts ...syncpod.Option) *specs {
	r.t.Helper()
	s := &specs{ContainerRunner: r.faulty}
	var err error
	r.Syncer, err = syncpod.New(syncpod.Config{Runtime: s, Cache: r, Sandboxes: r, Images: r, Reporter: r}, append(r.opts, opts...)...)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// users allots the same IDs to everybody.
type users struct {
	err      error
	released []types.UID
}

func (u *users) Allot(types.UID) (*podmill.IDMappings, error) {
	if u.err != nil {
		return nil, u.err
	}
	ids := []podmill.IDMapping{{Host: 1 << 20, Length: 1 << 16}}
	return &podmill.IDMappings{UIDs: ids, GIDs: ids}, nil
}

func (u *users) Release(pod types.UID) error {
	u.released = append(u.released, pod)
	return nil
}

func ownUsers(pod *corev1.Pod) { own := false; pod.Spec.HostUsers = &own }

func TestUserNamespace(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		u := &users{}
		asked := r.asked(syncpod.WithUserNamespaces(u))
		other := podmilltest.Pod("other", podmilltest.Container("main", "img:1"))
		pod := podmilltest.Pod("web", podmilltest.Container("main", "img:1"), ownUsers)
		for _, p := range []*corev1.Pod{other, pod} {
			if _, err := r.SyncPod(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		if spec := asked.containers[0]; spec.Sandbox.IDMappings != nil || len(spec.Mounts) == 0 || spec.Mounts[0].IDMappings != nil {
			t.Errorf("a pod with the node's users: %+v", spec)
		}
		want, _ := u.Allot("")
		spec := asked.containers[1]
		for what, got := range map[string]*podmill.IDMappings{"its sandbox": spec.Sandbox.IDMappings, "/etc/hosts": spec.Mounts[0].IDMappings, "its last words": spec.Mounts[1].IDMappings} {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
		if len(u.released) > 0 {
			t.Errorf("released: %v", u.released)
		}
		if err := r.SyncTerminatingPod(t.Context(), pod, end(time.Second)); err != nil {
			t.Fatal(err)
		}
		if len(u.released) > 0 {
			t.Error("its users are anybody's while something is left of it")
		}
		if err := r.SyncTerminatedPod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(u.released, pod.UID) {
			t.Error("its users are nobody's any more")
		}
	})
}

func TestNoUserNamespaceIsLeft(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.asked(syncpod.WithUserNamespaces(&users{err: errors.New("no range is free")}))
		pod := podmilltest.Pod("web", podmilltest.Container("main", "img:1"), ownUsers)
		for range 2 {
			if _, err := r.SyncPod(t.Context(), pod); err == nil {
				t.Fatal("it started")
			}
		}
		waits := r.progress.Waiting["main"]
		if waits.Reason != "CreateContainerConfigError" || waits.Message != "spec.hostUsers: no range is free" {
			t.Errorf("it waits with %+v", waits)
		}
		if n := r.rt.Log().Count(podmilltest.OpRunSandbox); n > 0 {
			t.Error("it has a sandbox with the node's users")
		}
	})
}

func TestDevices(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		asks := func(c *corev1.Container) {
			c.Resources.Limits = corev1.ResourceList{"example.com/gpu": resource.MustParse("1"), "cpu": resource.MustParse("1")}
			c.Env = []corev1.EnvVar{{Name: "GPU", Value: "mine"}}
		}
		pod := podmilltest.Pod("web", podmilltest.Container("plain", "img:1"), podmilltest.Container("gpu", "img:1", asks))
		calls := 0
		allot := func(_ context.Context, p *corev1.Pod, c *corev1.Container) (*podmill.DeviceAllotment, error) {
			if calls++; p != pod || c.Name != "gpu" {
				t.Errorf("asked for container %s of %s", c.Name, p.Name)
			}
			return &podmill.DeviceAllotment{
				Devices:     []podmill.Device{{ContainerPath: "/dev/gpu", HostPath: "/dev/gpu7", Permissions: "rw"}},
				CDIDevices:  []string{"example.com/gpu=7"},
				Mounts:      []podmill.Mount{{ContainerPath: "/lib/gpu", HostPath: "/usr/lib/gpu", ReadOnly: true}},
				Env:         []podmill.EnvVar{{Name: "GPU", Value: "7"}, {Name: "DRIVER", Value: "1.2"}},
				Annotations: map[string]string{"example.com/gpu": "7", podmill.AnnotationRestartCount: "99"},
			}, nil
		}
		asked := r.asked(syncpod.WithDevices(allot))
		if _, err := r.SyncPod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		if calls != 1 {
			t.Errorf("asked %d times", calls)
		}
		for _, spec := range asked.containers {
			gpu := spec.Container.Name == "gpu"
			if has := len(spec.Devices) == 1 && len(spec.CDIDevices) == 1 && spec.Mounts[0].HostPath == "/usr/lib/gpu"; has != gpu {
				t.Errorf("container %s has %v, %v, %v", spec.Container.Name, spec.Devices, spec.CDIDevices, spec.Mounts)
			}
			if !gpu {
				continue
			}
			env := []podmill.EnvVar{{Name: "GPU", Value: "7"}, {Name: "DRIVER", Value: "1.2"}, {Name: "GPU", Value: "mine"}} // the last one wins
			if diff := cmp.Diff(env, spec.Env); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
			if a := spec.Annotations; a["example.com/gpu"] != "7" || a[podmill.AnnotationRestartCount] != "0" {
				t.Errorf("annotations %v", a)
			}
		}
	})
}

func TestDevicesThatAreNotToBeHad(t *testing.T) {
	for want, opts := range map[string][]syncpod.Option{
		"resources.limits[example.com/gpu]: nothing hands out devices here": nil,
		"resources.limits: allot devices: all are taken": {syncpod.WithDevices(func(context.Context, *corev1.Pod, *corev1.Container) (*podmill.DeviceAllotment, error) {
			return nil, errors.New("all are taken")
		})},
	} {
		bubble(t, func(t *testing.T, r *rig) {
			asked := r.asked(opts...)
			pod := podmilltest.Pod("web", podmilltest.Container("gpu", "img:1", func(c *corev1.Container) {
				c.Resources.Limits = corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}
			}))
			_, err := r.SyncPod(t.Context(), pod)
			if waits := r.progress.Waiting["gpu"]; err == nil || waits.Reason != "CreateContainerConfigError" || waits.Message != want || len(asked.containers) > 0 {
				t.Errorf("error %v, waits with %+v, want %s", err, waits, want)
			}
		})
	}
}

// An init container leaves a variable in a file, and the next container has it (KEP-3721).
func TestVariablesFromFiles(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		asked := r.asked()
		mounts := func(c *corev1.Container) {
			c.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
			if c.Name == "main" {
				c.Env = []corev1.EnvVar{{Name: "TOKEN", ValueFrom: &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{VolumeName: "data", Path: "dir/app.env", Key: "KEY"}}}}
			}
		}
		pod := podmilltest.Pod("web", podmilltest.Container("main", "img:1", mounts), func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		})
		volumes, err := r.volumes.MountVolumes(t.Context(), pod)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(volumes["data"].HostPath, 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := r.SyncPod(t.Context(), pod); err == nil {
			t.Fatal("it started without")
		}
		const want = `env TOKEN: fileKeyRef: file "dir/app.env" of volume "data" not found`
		if waits := r.progress.Waiting["main"]; waits.Reason != "CreateContainerConfigError" || waits.Message != want {
			t.Errorf("it waits with %+v", waits)
		}
		file := filepath.Join(volumes["data"].HostPath, "dir", "app.env")
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte("KEY='s3cret' # made by init\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, err := r.SyncPod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(asked.containers[0].Env); got != "[{TOKEN s3cret}]" {
			t.Errorf("its environment is %s", got)
		}
		if strings.Contains(r.story(), "s3cret") {
			t.Error("the value was told")
		}
	})
}

// CVE-2019-11245: who a container runs as is the same whether its image was just pulled, is there already, or it is restarted.
func TestTheUserIsTheSameOnEveryStart(t *testing.T) {
	yes := true
	for name, tc := range map[string]struct {
		context *corev1.SecurityContext
		want    string // nothing is the image's own
	}{
		"the image's own": {},
		"proven not root": {&corev1.SecurityContext{RunAsNonRoot: &yes}, "1000"},
		"with a group":    {&corev1.SecurityContext{RunAsGroup: new(int64)}, "1000"},
	} {
		image := podmilltest.Image{Ref: "users:1", User: "1000"}
		bubble(t, func(t *testing.T, r *rig) {
			asked := r.asked()
			pod := podmilltest.Pod("web", podmilltest.Container("a", "users:1", func(c *corev1.Container) { c.SecurityContext = tc.context }))
			other := podmilltest.Edit(pod, podmilltest.UID("another"))
			for _, p := range []*corev1.Pod{pod, other} { // the image is pulled for the first only
				if _, err := r.SyncPod(t.Context(), p); err != nil {
					t.Fatal(err)
				}
			}
			r.rt.KillProcess(pod.UID, "a", 1)
			r.forget(pod.UID)
			if _, err := r.SyncPod(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			if len(asked.containers) != 3 || asked.containers[2].Attempt != 1 {
				t.Fatalf("%s: started %d times", name, len(asked.containers))
			}
			for i, spec := range asked.containers {
				got := ""
				if spec.User != nil && spec.User.UID != nil {
					got = fmt.Sprint(*spec.User.UID)
				}
				if got != tc.want {
					t.Errorf("%s: start %d is as user %q, want %q", name, i, got, tc.want)
				}
			}
		}, podmilltest.WithRegistry(podmilltest.RemoteImage{Image: image}))
	}
}

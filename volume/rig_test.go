package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/volume/internal/hostdir"
)

func TestMain(m *testing.M) {
	if root := os.Getenv(victimRoot); root != "" {
		fmt.Println(beVictim(root))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// rig is a manager and what is around it. Where it may mount it does.
type rig struct {
	*Manager
	t       testing.TB
	root    string
	objects *podmilltest.Objects
	events  *podmilltest.EventRecorder
	opts    []Option
}

func newRig(t testing.TB, opts ...Option) *rig {
	t.Helper()
	r := &rig{t: t, root: t.TempDir(), objects: podmilltest.NewObjects(), events: podmilltest.NewEventRecorder(), opts: opts}
	r.restart()
	t.Cleanup(func() {
		r.restart()
		if err := r.Cleanup(context.Background(), func(types.UID) bool { return false }); err != nil {
			t.Errorf("clean up: %v", err)
		}
		if left := r.list("pods"); len(left) > 0 {
			t.Errorf("left on disk: %v", left)
		}
	})
	return r
}

// restart puts another process's manager in the place of this one.
func (r *rig) restart() {
	r.t.Helper()
	opts := []Option{WithObjects(r.objects, r.objects), WithEvents(r.events)}
	if !mayMount() {
		opts = append(opts, WithFilesOnDisk())
	}
	m, err := New(r.root, append(opts, r.opts...)...)
	must(r.t, err)
	r.Manager = m
}

func mayMount() bool { return hostdir.HasMounts && os.Geteuid() == 0 }

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// mount mounts a pod's volumes, and returns the path of the one called v, if any.
func (r *rig) mount(pod *corev1.Pod) string {
	r.t.Helper()
	volumes, err := r.MountVolumes(r.t.Context(), pod)
	must(r.t, err)
	return volumes["v"].HostPath
}

func (r *rig) unmount(pod *corev1.Pod) {
	r.t.Helper()
	must(r.t, r.UnmountVolumes(r.t.Context(), pod.UID))
}

// refused returns why a pod's volumes cannot be made, which has to be known at once.
func (r *rig) refused(pod *corev1.Pod) string {
	r.t.Helper()
	_, err := r.MountVolumes(r.t.Context(), pod)
	if !errors.Is(err, errors.ErrUnsupported) {
		r.t.Fatalf("error %v, want one that says that it is not supported", err)
	}
	return err.Error()
}

// place returns where a pod's volume is.
func (r *rig) place(pod *corev1.Pod, plugin string, path ...string) string {
	return filepath.Join(append([]string{r.root, "pods", string(pod.UID), "volumes", plugin}, path...)...)
}

// list returns all that is below a directory of the root, by path.
func (r *rig) list(dir string) []string {
	r.t.Helper()
	var all []string
	start := filepath.Join(r.root, dir)
	_ = filepath.WalkDir(start, func(path string, _ fs.DirEntry, err error) error {
		if path != start && err == nil {
			relative, _ := filepath.Rel(start, path)
			all = append(all, relative)
		}
		return nil
	})
	return all
}

func (r *rig) configMap(name string, data map[string]string) {
	r.objects.SetConfigMap(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: data})
}

func (r *rig) secret(name string, data map[string]string) {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string][]byte{}}
	for key, value := range data {
		s.Data[key] = []byte(value)
	}
	r.objects.SetSecret(s)
}

// volume adds a volume that a container mounts.
func volume(name string, source corev1.VolumeSource) podmilltest.PodOption {
	return func(pod *corev1.Pod) {
		podmilltest.Volume(name, source)(pod)
		podmilltest.Container("uses-"+name, "i", podmilltest.VolumeMount(name, "/"+name))(pod)
	}
}

// podOf returns a pod with one volume, called v.
func podOf(source corev1.VolumeSource, opts ...podmilltest.PodOption) *corev1.Pod {
	return podmilltest.Pod("a", append([]podmilltest.PodOption{volume("v", source)}, opts...)...)
}

func fsGroupOf(gid int64) podmilltest.PodOption {
	return func(pod *corev1.Pod) { pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: &gid} }
}

func named(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }

func configMapSource(name string, items ...corev1.KeyToPath) corev1.VolumeSource {
	return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: named(name), Items: items}}
}

func secretSource(name string, items ...corev1.KeyToPath) corev1.VolumeSource {
	return corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name, Items: items}}
}

func emptyDirSource(medium corev1.StorageMedium) corev1.VolumeSource {
	return corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium}}
}

// holds checks that a volume has exactly these files.
func holds(t testing.TB, path string, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	version, err := filepath.EvalSymlinks(filepath.Join(path, "..data"))
	must(t, err)
	must(t, filepath.WalkDir(version, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(version, name)
		must(t, err)
		data, err := os.ReadFile(filepath.Join(path, relative))
		got[filepath.ToSlash(relative)] = string(data)
		return err
	}))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

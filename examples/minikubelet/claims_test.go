package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/agent"
	"github.com/podmill/podmill/internal/testenv"
	"github.com/podmill/podmill/podmilltest"
)

// cluster has what an API server would: claims and tokens.
type cluster struct{ *podmilltest.Objects }

func (cluster) ServiceAccountToken(_ context.Context, pod *corev1.Pod, s *corev1.ServiceAccountTokenProjection) (podmill.Token, error) {
	return podmill.Token{Value: pod.Name + " for " + s.Audience, Expires: time.Now().Add(time.Hour)}, nil
}

func (c cluster) bind(name, path string, mode corev1.PersistentVolumeMode) {
	c.Bind(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "uid"}},
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + name}, Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}}, VolumeMode: &mode,
		}})
}

func claimed(name string) podmilltest.PodOption {
	return podmilltest.Volume(name, corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}})
}

// A pod of a source that is no file has a local directory, a block device and a token.
func TestClaimsOnContainerd(t *testing.T) {
	testenv.Root(t)
	objects, dir, device := cluster{podmilltest.NewObjects()}, t.TempDir(), filepath.Join(t.TempDir(), "device")
	if err := unix.Mknod(device, unix.S_IFBLK|0o600, int(unix.Mkdev(7, 77))); err != nil { // nobody opens it
		t.Fatal(err)
	}
	objects.bind("data", dir, corev1.PersistentVolumeFilesystem)
	objects.bind("disk", device, corev1.PersistentVolumeBlock)
	s := newStarter(t, func(r podmill.Runtime) podmill.Runtime { return r }, agent.WithObjects(objects))
	pod := podmilltest.Pod("claims-"+filepath.Base(dir), sleeping("main"), claimed("data"), claimed("disk"), podmilltest.Grace(0),
		podmilltest.UID(podmilltest.Pod(dir).UID), podmilltest.Volume("token", corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "vault", Path: "token"}},
		}}}), func(pod *corev1.Pod) {
			c := &pod.Spec.Containers[0]
			c.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}, {Name: "token", MountPath: "/token"}, {Name: "data", MountPath: "/part", SubPath: "a"}}
			c.VolumeDevices = []corev1.VolumeDevice{{Name: "disk", DevicePath: "/dev/disk"}}
		})
	s.start(pod)
	result, err := s.agent.Exec(t.Context(), pod.Namespace, pod.Name, "main", []string{"sh", "-c", "cat /token/token; echo; echo here > /data/note; echo part > /part/note; stat -c '%F %t %T' /dev/disk"})
	if err != nil {
		t.Fatal(err)
	}
	if want := pod.Name + " for vault\nblock special file 7 4d\n"; string(result.Stdout) != want {
		t.Errorf("it sees %q%q, want %q", result.Stdout, result.Stderr, want)
	}
	for name, want := range map[string]string{"note": "here\n", "a/note": "part\n"} {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(data) != want {
			t.Errorf("%s on the host: %q, %v", name, data, err)
		}
	}
	s.source.Delete(pod)
	deadline := time.Now().Add(time.Minute)
	for mounts := " "; strings.Contains(mounts, string(pod.UID)) || mounts == " "; time.Sleep(50 * time.Millisecond) {
		data, err := os.ReadFile("/proc/self/mounts")
		if mounts = string(data); err != nil || time.Now().After(deadline) {
			t.Fatalf("%v, mounts are left:\n%s", err, mounts)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "a/note")); err != nil {
		t.Errorf("what is in the claim went with the pod: %v", err)
	}
}

package volume_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/volume"
)

func Example() {
	root, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(root)
	objects := podmilltest.NewObjects()
	objects.SetConfigMap(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"},
		Data:       map[string]string{"colour": "green"},
	})
	pod := podmilltest.Pod("default/web",
		podmilltest.Container("web", "busybox", podmilltest.VolumeMount("config", "/etc/config")),
		podmilltest.Volume("config", corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "settings"},
		}}))

	ctx := context.Background()
	volumes, err := volume.New(root, volume.WithObjects(objects, objects))
	if err != nil {
		panic(err)
	}
	ready, err := volumes.MountVolumes(ctx, pod)
	if err != nil {
		panic(err)
	}
	colour, _ := os.ReadFile(filepath.Join(ready["config"].HostPath, "colour"))
	fmt.Printf("%s, read-only: %v\n", colour, ready["config"].ReadOnly)

	if err := volumes.UnmountVolumes(ctx, pod.UID); err != nil {
		panic(err)
	}
	_, err = os.Stat(ready["config"].HostPath)
	fmt.Println("gone:", os.IsNotExist(err))
	// Output:
	// green, read-only: true
	// gone: true
}

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podmill/podmill/internal/testenv"
	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/volume"
)

// readers are ten processes that read all keys of a volume, as often as they can, until there is a file /tmp/stop. Each says how often it saw one version and how often several; one
// that is replaced under its hands begins anew.
const readers = `
reader() {
  one=0 mixed=0
  while [ ! -e /tmp/stop ]; do
    cd -P /config/..data 2>/dev/null || continue
    read -r a < a && read -r b < b && read -r c < c || continue
    if [ "$a" = "$b" ] && [ "$b" = "$c" ]; then one=$((one+1)); else mixed=$((mixed+1)); fi
  done 2>/dev/null
  echo $one $mixed
}
for i in 1 2 3 4 5 6 7 8 9 10; do reader & done
wait
`

// Ten readers in a container see one version of a ConfigMap each time that they look, while it changes ten thousand times.
func TestReadersInAContainer(t *testing.T) {
	n := newNode(t, testenv.Containerd(t))
	root, err := os.MkdirTemp("/dev/shm", "readers") // where ten thousand changes take seconds
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	objects := podmilltest.NewObjects()
	volumes, err := volume.New(root, volume.WithObjects(objects, objects))
	if err != nil {
		t.Fatal(err)
	}
	source := corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "config"}}}
	writer := podmilltest.Pod("writer", podmilltest.Volume("config", source), podmilltest.Container("main", "i", podmilltest.VolumeMount("config", "/config")))
	change := func(version int) string {
		t.Helper()
		v := strconv.Itoa(version) + "\n"
		objects.SetConfigMap(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "config"}, Data: map[string]string{"a": v, "b": v, "c": v}})
		ready, err := volumes.MountVolumes(t.Context(), writer)
		if err != nil {
			t.Fatal(err)
		}
		return ready["config"].HostPath
	}
	n.write("readers.yaml", fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: readers}
spec:
  restartPolicy: Never
  containers:
  - {name: main, image: "podmill.test/busybox:1", command: [sh, -c, %q], volumeMounts: [{name: config, mountPath: /config, readOnly: true}]}
  volumes: [{name: config, hostPath: {path: %s}}]
`, readers, change(0)))
	n.start()
	n.reaches("readers", "is ready", ready)
	for i := range 10_000 {
		change(i + 1)
	}
	n.sh("readers", "main", "touch /tmp/stop")
	n.reaches("readers", "has ended", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodSucceeded })
	out, err := n.ask("logs", "readers")
	said := strings.Fields(out)
	if err != nil || len(said) != 20 {
		t.Fatalf("the readers say %q, %v", said, err)
	}
	total := 0
	for i := 0; i < len(said); i += 2 {
		one, err := strconv.Atoi(said[i])
		if err != nil || said[i+1] != "0" || one == 0 {
			t.Errorf("a reader saw one version %s times, and a mix %s times", said[i], said[i+1])
		}
		total += one
	}
	t.Logf("%d looks at whole versions", total)
}

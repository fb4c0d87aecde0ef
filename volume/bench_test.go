package volume

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
)

// directories returns where to measure: on disk, and in memory where there is a place for that.
func directories(b *testing.B) map[string]string {
	dirs := map[string]string{"disk": b.TempDir()}
	if dir, err := os.MkdirTemp("/dev/shm", "bench"); err == nil {
		b.Cleanup(func() { _ = os.RemoveAll(dir) })
		dirs["tmpfs"] = dir
	}
	return dirs
}

const keys = 10

// BenchmarkConfigMapReady is a ConfigMap of ten keys that is mounted for the first time, and brought up to date with new content and with the
// same, beside ten files that are plainly written, and read.
func BenchmarkConfigMapReady(b *testing.B) {
	data := map[string]string{}
	for key := range keys {
		data[fmt.Sprintf("key-%d", key)] = fmt.Sprintf("%1000d", key)
	}
	for name, root := range directories(b) {
		b.Run("on="+name+"/baseline=write", func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				dir := filepath.Join(root, "plain", fmt.Sprint(i))
				must(b, os.MkdirAll(dir, 0o755))
				for key, value := range data {
					must(b, os.WriteFile(filepath.Join(dir, key), []byte(value), 0o644))
				}
			}
		})
		b.Run("on="+name+"/baseline=read", func(b *testing.B) {
			for b.Loop() {
				for key := range data {
					if _, err := os.ReadFile(filepath.Join(root, "plain/0", key)); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
		b.Run("on="+name+"/first", func(b *testing.B) {
			m, pod, _ := benchManager(b, root, data)
			for b.Loop() {
				mount(b, m, pod)
				b.StopTimer()
				must(b, m.UnmountVolumes(b.Context(), pod.UID))
				b.StartTimer()
			}
		})
		b.Run("on="+name+"/changed", func(b *testing.B) {
			m, pod, set := benchManager(b, root, data)
			for i := 0; b.Loop(); i++ {
				data["key-0"] = fmt.Sprint(i)
				set()
				mount(b, m, pod)
			}
			must(b, m.UnmountVolumes(b.Context(), pod.UID))
		})
		b.Run("on="+name+"/unchanged", func(b *testing.B) {
			m, pod, _ := benchManager(b, root, data)
			for b.Loop() {
				mount(b, m, pod)
			}
			must(b, m.UnmountVolumes(b.Context(), pod.UID))
		})
	}
}

func benchManager(b *testing.B, root string, data map[string]string) (m *Manager, pod *corev1.Pod, set func()) {
	r := rig{t: b, root: root}
	r.objects = podmilltest.NewObjects()
	set = func() { r.configMap("cm", data) }
	set()
	r.restart()
	return r.Manager, podOf(configMapSource("cm")), set
}

func mount(b *testing.B, m podmill.VolumeMounter, pod *corev1.Pod) {
	if _, err := m.MountVolumes(b.Context(), pod); err != nil {
		b.Fatal(err)
	}
}

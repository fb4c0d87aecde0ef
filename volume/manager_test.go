package volume

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
)

// contextOf returns a context for something that may not succeed.
func contextOf(t testing.TB) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), 50*time.Millisecond)
}

func TestManagerKeepsTheContract(t *testing.T) {
	podmilltest.VolumeMounterTest(t, func(t *testing.T) podmilltest.VolumeMounterEnv {
		r := newRig(t)
		r.configMap("cm", map[string]string{"a": "1"})
		r.secret("s", map[string]string{"a": "1"})
		return podmilltest.VolumeMounterEnv{
			Mounter: r.Manager,
			Volumes: func(pod *corev1.Pod) {
				volume("config", configMapSource("cm"))(pod)
				volume("secret", secretSource("s"))(pod)
				volume("scratch", emptyDirSource(""))(pod)
			},
			Broken: volume("broken", configMapSource("missing")),
			Restart: func(t *testing.T) podmill.VolumeMounter {
				r.restart()
				return r.Manager
			},
		}
	})
}

func TestRootMustBeAbsolute(t *testing.T) {
	if _, err := New("var/lib"); err == nil {
		t.Error("a relative root directory was taken")
	}
}

// B114: volumes that are made at the same time each have their own content.
func TestManyPodsAtATime(t *testing.T) {
	r := newRig(t)
	var pods sync.WaitGroup
	for i := range 8 {
		name := fmt.Sprintf("pod-%d", i)
		for _, volume := range []string{"a", "b"} {
			r.configMap(name+volume, map[string]string{"key": name + volume})
			r.secret(name+volume, map[string]string{"key": name + volume})
		}
		pod := podmilltest.Pod(name, volume("a", configMapSource(name+"a")), volume("b", configMapSource(name+"b")),
			volume("sa", secretSource(name+"a")), volume("sb", secretSource(name+"b")))
		pods.Go(func() {
			for range 3 {
				volumes, err := r.MountVolumes(t.Context(), pod)
				if err != nil {
					t.Error(err)
					return
				}
				for volume, want := range map[string]string{"a": name + "a", "b": name + "b", "sa": name + "a", "sb": name + "b"} {
					if data, err := os.ReadFile(volumes[volume].HostPath + "/key"); err != nil || string(data) != want {
						t.Errorf("volume %s of %s: %q, %v", volume, name, data, err)
					}
				}
				if err := r.UnmountVolumes(t.Context(), pod.UID); err != nil {
					t.Error(err)
				}
			}
		})
	}
	pods.Go(func() {
		for range 5 {
			_ = r.Cleanup(t.Context(), func(types.UID) bool { return false })
		}
	})
	pods.Wait()
}

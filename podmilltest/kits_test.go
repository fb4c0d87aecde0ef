package podmilltest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

func TestStatusSinkKeepsTheContract(t *testing.T) { StatusSinkTest(t, memorySink) }

func TestPodSourceKeepsTheContract(t *testing.T) { PodSourceTest(t, memorySource) }

func TestVolumeMounterKeepsTheContract(t *testing.T) { VolumeMounterTest(t, memoryVolumes) }

func memorySink(*testing.T) StatusSinkEnv {
	sink := NewStatusSink()
	return StatusSinkEnv{
		Sink:   sink,
		Status: func(_ *testing.T, pod *corev1.Pod) *corev1.PodStatus { return sink.Status(pod.UID) },
		Writes: func() int {
			sink.mu.Lock()
			defer sink.mu.Unlock()
			n := 0
			for _, d := range sink.pods {
				n += len(d.statuses)
			}
			return n
		},
	}
}

func memorySource(*testing.T) PodSourceEnv {
	source := NewPodSource("test")
	source.Replace()
	return PodSourceEnv{
		Source: source,
		Put:    func(_ *testing.T, pod *corev1.Pod) { source.Upsert(pod) },
		Remove: func(_ *testing.T, pod *corev1.Pod) { source.Delete(pod) },
	}
}

func memoryVolumes(*testing.T) VolumeMounterEnv {
	m := NewVolumeMounter("/volumes")
	m.Fail(func(_ types.UID, volume string) error {
		if volume == "broken" {
			return errors.New("it is broken")
		}
		return nil
	})
	return VolumeMounterEnv{
		Mounter: m,
		Volumes: func(pod *corev1.Pod) {
			Volume("a", corev1.VolumeSource{})(pod)
			Volume("b", corev1.VolumeSource{})(pod)
		},
		Broken:  Volume("broken", corev1.VolumeSource{}),
		Restart: func(*testing.T) podmill.VolumeMounter { return m },
		Exists: func(v podmill.Volume) bool {
			parts := strings.Split(v.HostPath, "/")
			return slices.Contains(m.Mounted(types.UID(parts[2])), parts[3])
		},
	}
}

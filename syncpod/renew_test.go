package syncpod_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/syncpod"
)

// ending mounts volumes that want to be brought up to date after a time.
type ending struct {
	podmill.VolumeMounter
	after  time.Duration
	mounts int
}

func (e *ending) MountVolumes(ctx context.Context, pod *corev1.Pod) (map[string]podmill.Volume, error) {
	e.mounts++
	volumes, err := e.VolumeMounter.MountVolumes(ctx, pod)
	renewed := map[string]podmill.Volume{}
	for name, v := range volumes {
		if name == "token" {
			v.Renew = time.Now().Add(e.after)
		}
		renewed[name] = v
	}
	return renewed, err
}

// A pod at rest, to which nothing happens and which nobody looks at in turns, is synced when a volume of it wants to be brought up to date; one whose volume wants what cannot
// be, to have been so before, is left alone.
func TestAPodAtRestIsSyncedForItsVolumes(t *testing.T) {
	for _, tc := range []struct {
		after, during time.Duration
		least, most   int
	}{
		{4 * time.Second, time.Minute, 15, 18}, // some more while it starts
		{24 * time.Hour, 72*time.Hour + time.Minute, 4, 7},
		{-time.Second, time.Hour, 1, 4},
	} {
		bubble(t, func(t *testing.T, r *rig) {
			e := &ending{VolumeMounter: r.volumes, after: tc.after}
			r.restart(syncpod.WithVolumes(e))
			empty := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
			pod := podmilltest.Pod("shop/cart", podmilltest.Volume("token", empty), podmilltest.Volume("data", empty), podmilltest.Container("web", "img:1"))
			r.work(pod, tc.during)
			if e.mounts < tc.least || e.mounts > tc.most {
				t.Errorf("volumes that want it every %v were brought up to date %d times in %v, want %d to %d", tc.after, e.mounts, tc.during, tc.least, tc.most)
			}
			r.finish(pod, end(0))
			select {
			case <-r.woken: // while it was there
			default:
			}
			before := e.mounts
			time.Sleep(2 * tc.after)
			if synctest.Wait(); len(r.woken) != 0 || e.mounts != before {
				t.Error("a pod that has gone is woken")
			}
		})
	}
}

package syncpod_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/syncpod"
)

// prober says of every container that runs what judge says.
type prober struct {
	judge   func(c *podmill.Container) podmill.Health
	endings []bool
}

func (p *prober) Probe(_ *corev1.Pod, seen *podmill.RuntimePod, ending bool) map[string]podmill.Health {
	p.endings = append(p.endings, ending)
	all := map[string]podmill.Health{}
	for i := range seen.Containers {
		if c := &seen.Containers[i]; c.State == podmill.StateRunning {
			all[c.ID] = p.judge(c)
		}
	}
	return all
}

// B039: what the probes of the killed instance said is not said of the next.
func TestAFailedLivenessProbeRestartsTheContainerAndIsReported(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		sick := map[uint32]bool{}
		p := &prober{judge: func(c *podmill.Container) podmill.Health {
			h := podmill.Health{Started: true, Ready: !sick[c.Attempt]}
			if sick[c.Attempt] {
				h.Failed = podmill.ProbeLiveness
			}
			return h
		}}
		r.restart(syncpod.WithProber(p))
		pod := podmilltest.Pod("shop/cart", podmilltest.Restart(corev1.RestartPolicyOnFailure), podmilltest.Container("web", "img:1"))
		r.work(pod, time.Second)
		sick[0] = true
		r.work(pod, time.Minute)
		if diff := cmp.Diff([]string{"web#0 exited", "web#1 running"}, r.states(pod)); diff != "" {
			t.Errorf("(-want +got):\n%s\n%s", diff, r.story())
		}
		if !r.has("event Normal Killing", "Container web failed liveness probe, will be restarted") {
			t.Errorf("nobody was told\n%s", r.story())
		}
		want := map[string]podmill.Health{r.seen.Container("web").ID: {Started: true, Ready: true}}
		if diff := cmp.Diff(want, r.progress.Health); diff != "" {
			t.Errorf("reported health (-want +got):\n%s", diff)
		}

		before := len(p.endings)
		if err := r.SyncTerminatingPod(t.Context(), pod, end(time.Second)); err != nil {
			t.Fatal(err)
		}
		if rest := p.endings[before:]; len(rest) == 0 || slices.Contains(rest, false) || slices.Contains(p.endings[:before], true) {
			t.Errorf("looks at an ending pod: %v after %v", rest, p.endings[:before])
		}
	})
}

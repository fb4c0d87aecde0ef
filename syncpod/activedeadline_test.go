package syncpod_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podmill/podmill/podmilltest"
)

func mayRun(d time.Duration) podmilltest.PodOption {
	return func(pod *corev1.Pod) { seconds := int64(d / time.Second); pod.Spec.ActiveDeadlineSeconds = &seconds }
}

// B049: the pod's time is up when its deadline says so, to the moment: while it runs, after the agent was restarted, while it pulls, with a new deadline.
func TestActiveDeadline(t *testing.T) {
	const exceeded = "event Normal DeadlineExceeded shop/cart: Pod was active on the node longer than the specified deadline"
	for name, live := range map[string]func(r *rig) (want time.Duration){
		"it runs": func(r *rig) time.Duration {
			r.work(podmilltest.Pod("shop/cart", mayRun(20*time.Second), podmilltest.Container("web", "img:1")), time.Hour)
			return 20 * time.Second
		},
		"the agent restarts": func(r *rig) time.Duration {
			pod := podmilltest.Pod("shop/cart", mayRun(20*time.Second), podmilltest.Container("web", "img:1"))
			started := metav1.Now()
			r.work(pod, 15*time.Second)
			r.restart()
			pod.Status.StartTime = &started
			r.work(pod, time.Hour)
			return 20 * time.Second
		},
		"it pulls": func(r *rig) time.Duration {
			r.faulty.Add(podmilltest.Fault{On: podmilltest.OpInspectImage, Effect: podmilltest.Hang(nil)})
			r.work(podmilltest.Pod("shop/cart", mayRun(20*time.Second), podmilltest.Container("web", "img:1")), time.Hour)
			return 20 * time.Second
		},
		"a new deadline": func(r *rig) time.Duration {
			pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1"))
			r.work(pod, 10*time.Second)
			r.work(podmilltest.Edit(pod, mayRun(15*time.Second)), time.Hour)
			return 15 * time.Second
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				began := time.Now()
				want := live(r)
				if got := time.Since(began); got.Truncate(time.Second) != want {
					t.Errorf("it ended after %v, want %v", got, want)
				}
				if !r.has(exceeded) || !r.has("end: DeadlineExceeded") {
					t.Errorf("nobody was told\n%s", r.story())
				}
			})
		})
	}
}

package agent_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	. "github.com/podmill/podmill/podmilltest"
)

// B049, B013: the active deadline counts from the pod's start and not from the agent's, and Failed is told when every container has stopped.
func TestTheActiveDeadlineSurvivesARestart(t *testing.T) {
	inWorld(t, func(w *world) {
		pod := Pod("job", static, Restart(corev1.RestartPolicyNever), Grace(30*time.Second),
			Container("quick", "busybox:1"),
			Container("slow", "busybox:1", Runs("trap '' TERM; sleep 1000000")),
			func(pod *corev1.Pod) { seconds := int64(20); pod.Spec.ActiveDeadlineSeconds = &seconds })
		w.start()
		w.file.Replace(pod)
		w.pass(15 * time.Second)
		w.start()
		w.pass(4 * time.Second)
		w.wantPhase(pod, corev1.PodRunning)
		w.pass(2 * time.Second)
		if !slices.Contains(w.events.Reasons(), "DeadlineExceeded") {
			t.Errorf("nobody was told after 21 s\n%s", w.events)
		}
		w.wantPhase(pod, corev1.PodRunning) // one still runs
		w.pass(time.Minute)
		if got := w.wantPhase(pod, corev1.PodFailed); got.Status.Reason != "DeadlineExceeded" {
			t.Errorf("it failed with %q: %s", got.Status.Reason, got.Status.Message)
		}
	})
}

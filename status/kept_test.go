package status_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/status"
)

// What was told of a pod that is over, and of which the runtime has nothing any more, stays as it is over a restart: why it was rejected, and how its containers ran.
func TestWhatIsOverStaysAsItWasTold(t *testing.T) {
	pod := podmilltest.Pod("p", podmilltest.Container("c", "i"))
	signal := corev1.Signal("SIGTERM")
	for name, told := range map[string]corev1.PodStatus{
		"rejected": {Phase: corev1.PodFailed, Reason: "OutOfcpu", Message: "Pod was rejected", QOSClass: corev1.PodQOSBestEffort},
		"run":      {Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{{Name: "c", StopSignal: &signal, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			now := status.Generate(status.Input{Pod: pod, Last: &told}, time.Now())
			if name == "rejected" {
				if diff := cmp.Diff(told, now); diff != "" {
					t.Errorf("status (-told +now):\n%s", diff)
				}
				return
			}
			if got := now.ContainerStatuses[0].StopSignal; got == nil || *got != signal {
				t.Errorf("stop signal %v, was %v", got, signal)
			}
		})
	}
}

package status

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// What has ended is on disk before anybody goes on; what only runs need not be.
func TestWhatHasEndedLasts(t *testing.T) {
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}
	one := func(c corev1.ContainerStatus) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{Name: "first"}, c}
	}
	for name, tt := range map[string]struct {
		status corev1.PodStatus
		want   bool
	}{
		"nothing yet":             {corev1.PodStatus{Phase: corev1.PodPending}, false},
		"running":                 {corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: one(corev1.ContainerStatus{})}, false},
		"succeeded":               {corev1.PodStatus{Phase: corev1.PodSucceeded}, true},
		"failed":                  {corev1.PodStatus{Phase: corev1.PodFailed}, true},
		"restarted":               {corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: one(corev1.ContainerStatus{RestartCount: 1})}, true},
		"ended":                   {corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: one(corev1.ContainerStatus{State: ended})}, true},
		"ended before":            {corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: one(corev1.ContainerStatus{LastTerminationState: ended})}, true},
		"init has ended":          {corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: one(corev1.ContainerStatus{State: ended})}, true},
		"what looked in has gone": {corev1.PodStatus{Phase: corev1.PodRunning, EphemeralContainerStatuses: one(corev1.ContainerStatus{State: ended})}, true},
	} {
		if got := lasting(&tt.status); got != tt.want {
			t.Errorf("%s: lasts: %v, want %v", name, got, tt.want)
		}
	}
}

package status

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// The name of a file that has to last is put on disk too, when it leads to the new content. Until that is done, UpdateStatus has failed.
func TestTheNameOfWhatLastsIsOnDisk(t *testing.T) {
	s, err := NewFileSink(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "u"}}
	synced, broken := 0, errors.New("no disk")
	s.sync = func(dir string) error {
		data, err := os.ReadFile(filepath.Join(s.dir, "u.json"))
		if dir != s.dir || err != nil || !strings.Contains(string(data), string(corev1.PodFailed)) {
			t.Errorf("%s is put on disk when the file says %q, %v", dir, data, err)
		}
		synced++
		return broken
	}
	if err := s.UpdateStatus(t.Context(), pod, &corev1.PodStatus{Phase: corev1.PodRunning}); err != nil || synced > 0 {
		t.Errorf("a pod that runs: %v, %d times on disk", err, synced)
	}
	for range 2 { // the second time the file says so already
		if err := s.UpdateStatus(t.Context(), pod, &corev1.PodStatus{Phase: corev1.PodFailed}); !errors.Is(err, broken) {
			t.Errorf("a name that is not on disk: %v", err)
		}
	}
	broken = nil
	if err := s.UpdateStatus(t.Context(), pod, &corev1.PodStatus{Phase: corev1.PodFailed}); err != nil || synced != 3 {
		t.Errorf("%v, %d times on disk, want 3", err, synced)
	}
}

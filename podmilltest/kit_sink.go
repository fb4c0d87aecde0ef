package podmilltest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// StatusSinkEnv is an empty sink to be tested, and hands to look behind it.
type StatusSinkEnv struct {
	Sink podmill.StatusSink
	// Add makes a pod known to what the sink writes to, in place of another of the same name. It may be nil.
	Add func(t *testing.T, pod *corev1.Pod)
	// Status returns what is kept of the pod of this UID, nil if nothing is. It is needed.
	Status func(t *testing.T, pod *corev1.Pod) *corev1.PodStatus
	// Writes returns how many writes changed something, until now. Nil skips the test that needs it.
	Writes func() int
}

// StatusSinkTest holds a sink to the contract of [podmill.StatusSink]. It makes an environment for each of its subtests.
func StatusSinkTest(t *testing.T, newEnv func(t *testing.T) StatusSinkEnv) {
	for _, test := range []struct {
		name string
		run  func(k *sinkKit)
	}{
		{"NewestWins", testSinkNewestWins},
		{"NoChangeIsNoWrite", testSinkNoChangeIsNoWrite},
		{"NeverAnotherUID", testSinkNeverAnotherUID},
		{"FinishIsIdempotent", testSinkFinishIsIdempotent},
		{"ArgumentsStayAsTheyAre", testSinkArguments},
		{"ManyPods", testSinkManyPods},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.run(&sinkKit{T: t, StatusSinkEnv: newEnv(t)})
		})
	}
}

type sinkKit struct {
	*testing.T
	StatusSinkEnv
}

func (k *sinkKit) pod(name string, opts ...PodOption) *corev1.Pod {
	pod := Pod("podmilltest/"+name, append(opts, Container("c", "i"))...)
	if k.Add != nil {
		k.Add(k.T, pod)
	}
	return pod
}

// statusOf makes a status that differs for each n.
func statusOf(n int) *corev1.PodStatus {
	return &corev1.PodStatus{
		Phase: corev1.PodRunning, Message: fmt.Sprintf("status %d", n),
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "c", RestartCount: int32(n), Image: "i",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}},
		}},
	}
}

func (k *sinkKit) update(pod *corev1.Pod, n int) {
	k.Helper()
	if err := k.Sink.UpdateStatus(k.Context(), pod, statusOf(n)); err != nil {
		k.Fatalf("UpdateStatus of pod %s: %v", podmill.RefOf(pod), err)
	}
}

// holds fails the test unless the pod's status is the nth.
func (k *sinkKit) holds(pod *corev1.Pod, n int) {
	k.Helper()
	got := k.Status(k.T, pod)
	if got == nil {
		k.Fatalf("there is no status of pod %s", podmill.RefOf(pod))
	}
	if diff := gocmp.Diff(statusOf(n), got); diff != "" {
		k.Errorf("status of pod %s (-want +got):\n%s", podmill.RefOf(pod), diff)
	}
}

func testSinkNewestWins(k *sinkKit) {
	a, b := k.pod("a"), k.pod("b")
	k.update(a, 1)
	k.update(b, 10)
	k.update(a, 2)
	k.holds(a, 2)
	k.update(a, 1) // what was said before is news again
	k.holds(a, 1)
	k.holds(b, 10)
}

func testSinkNoChangeIsNoWrite(k *sinkKit) {
	if k.Writes == nil {
		k.Skip("the environment does not count writes")
	}
	pod := k.pod("a")
	k.update(pod, 1)
	before := k.Writes()
	for range 3 {
		k.update(pod, 1)
	}
	if got := k.Writes() - before; got != 0 {
		k.Errorf("%d writes of a status that is there already, want none", got)
	}
	k.update(pod, 2)
	if got := k.Writes() - before; got != 1 {
		k.Errorf("%d writes for one change, want 1", got)
	}
}

func testSinkNeverAnotherUID(k *sinkKit) {
	former := k.pod("a", UID("former"))
	k.update(former, 1)
	latter := k.pod("a", UID("latter"))
	k.update(latter, 2)
	if err := k.Sink.UpdateStatus(k.Context(), former, statusOf(3)); err != nil && !errors.Is(err, podmill.ErrGone) {
		k.Errorf("a status for a pod that was replaced: error %v, want ErrGone or none", err)
	}
	k.holds(latter, 2)
	if err := k.Sink.FinishPod(k.Context(), former); err != nil && !errors.Is(err, podmill.ErrGone) {
		k.Errorf("the end of a pod that was replaced: error %v, want ErrGone or none", err)
	}
	k.holds(latter, 2)
}

func testSinkFinishIsIdempotent(k *sinkKit) {
	pod, other := k.pod("a"), k.pod("b")
	k.update(pod, 1)
	k.update(other, 2)
	for range 2 {
		if err := k.Sink.FinishPod(k.Context(), pod); err != nil {
			k.Errorf("FinishPod: %v", err)
		}
	}
	k.holds(other, 2)
}

func testSinkArguments(k *sinkKit) {
	pod, status := k.pod("a"), statusOf(1)
	podBefore, statusBefore := pod.DeepCopy(), status.DeepCopy()
	for range 2 {
		if err := k.Sink.UpdateStatus(k.Context(), pod, status); err != nil {
			k.Fatalf("UpdateStatus: %v", err)
		}
	}
	if err := k.Sink.FinishPod(k.Context(), pod); err != nil {
		k.Fatalf("FinishPod: %v", err)
	}
	if diff := gocmp.Diff(podBefore, pod); diff != "" {
		k.Errorf("the sink changed its caller's pod (-before +after):\n%s", diff)
	}
	if diff := gocmp.Diff(statusBefore, status); diff != "" {
		k.Errorf("the sink changed its caller's status (-before +after):\n%s", diff)
	}
}

func testSinkManyPods(k *sinkKit) {
	const statuses = 10
	pods := make([]*corev1.Pod, 8)
	var writers sync.WaitGroup
	for i := range pods {
		pods[i] = k.pod(fmt.Sprint("pod-", i))
		writers.Go(func() {
			for n := range statuses + i {
				if err := k.Sink.UpdateStatus(k.Context(), pods[i], statusOf(n)); err != nil {
					k.Errorf("UpdateStatus of pod %s: %v", podmill.RefOf(pods[i]), err)
				}
			}
		})
	}
	writers.Wait()
	for i, pod := range pods {
		k.holds(pod, statuses+i-1)
	}
}

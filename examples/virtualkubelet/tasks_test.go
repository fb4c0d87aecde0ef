package main

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podmill/podmill"
	. "github.com/podmill/podmill/podmilltest"
)

// sleeps is a back end whose tasks sleep, as their containers' first arguments say.
func sleeps(_ *world, sink podmill.StatusSink) (Backend, error) { return NewTasks(sleep, sink), nil }

func nap(name string, args ...string) *corev1.Pod {
	return Pod(name, Restart(corev1.RestartPolicyNever), Container("a", "sleep", Args("1s")), Container("b", "sleep", Args(args...)))
}

func TestATaskRunsToItsEnd(t *testing.T) {
	inWorld(t, sleeps, func(w *world) {
		good, bad := nap("good", "5s"), nap("bad", "never")
		w.create(good)
		w.create(bad)
		w.pass(3 * time.Second)
		if status := w.status(good); status.Phase != corev1.PodRunning || status.ContainerStatuses[0].State.Terminated == nil || !status.ContainerStatuses[1].Ready {
			t.Errorf("after 3 s the good pod is %+v", status)
		}
		w.pass(3 * time.Second)
		if status := w.status(good); status.Phase != corev1.PodSucceeded {
			t.Errorf("the good pod is %+v", status)
		}
		status := w.status(bad)
		if end := status.ContainerStatuses[1].State.Terminated; status.Phase != corev1.PodFailed || end == nil || end.ExitCode != 2 {
			t.Errorf("the bad pod is %+v", status)
		}
	})
}

func TestATaskIsToldToEnd(t *testing.T) {
	inWorld(t, sleeps, func(w *world) {
		pod := nap("long", "1h")
		w.create(pod)
		w.pass(3 * time.Second)
		w.remove(pod, 10*time.Second)
		w.pass(time.Second)
		if len(w.api.confirmed) != 1 || w.api.told[len(w.api.told)-1] != "long/"+string(pod.UID)+": Failed" {
			t.Errorf("confirmed %v, told %v", w.api.confirmed, w.api.told)
		}
	})
}

// A task that heeds nothing delays nobody, and is not said to have ended.
func TestATaskThatDoesNotHear(t *testing.T) {
	var release chan struct{}
	deaf := func(context.Context, *corev1.Pod, *corev1.Container) int32 {
		<-release
		return 0
	}
	inWorld(t, func(_ *world, sink podmill.StatusSink) (Backend, error) {
		release = make(chan struct{}) // in the bubble
		return NewTasks(deaf, sink), nil
	}, func(w *world) {
		pod := nap("deaf", "")
		w.create(pod)
		w.pass(time.Second)
		w.remove(pod, time.Second)
		w.pass(time.Hour)
		if status := w.status(pod); status.Phase != corev1.PodRunning || len(w.api.confirmed) != 0 {
			t.Errorf("phase %s, confirmed %v", status.Phase, w.api.confirmed)
		}
		close(release)
		w.pass(time.Minute)
		if len(w.api.confirmed) != 1 {
			t.Error("the deletion was not confirmed when the task had ended")
		}
	})
}

// Of a pod that the API has forgotten, as one that was removed by force, nothing is kept, whether its tasks ran still or had ended.
func TestATaskOfAPodRemovedByForce(t *testing.T) {
	var tasks *Tasks
	inWorld(t, func(_ *world, sink podmill.StatusSink) (Backend, error) {
		tasks = NewTasks(sleep, sink)
		return tasks, nil
	}, func(w *world) {
		for _, pod := range []*corev1.Pod{nap("runs", "1h"), nap("ended", "2s")} {
			w.create(pod)
			w.pass(5 * time.Second)
			if _, known := tasks.statuses.Status(pod.UID); !known {
				t.Errorf("nothing is known of pod %s that runs or has ended", pod.Name)
			}
			w.api.lose(pod)
			if err := w.DeletePod(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			w.pass(time.Minute)
			if left := tasks.statuses.Pods(); len(left) != 0 || len(tasks.jobs) != 0 || len(w.api.confirmed) != 0 {
				t.Errorf("of pod %s there are left %d statuses and %d jobs; confirmed %v", pod.Name, len(left), len(tasks.jobs), w.api.confirmed)
			}
		}
	})
}

func TestWhatATaskCannotDoIsSaid(t *testing.T) {
	inWorld(t, sleeps, func(w *world) {
		pod := Pod("web", Container("a", "sleep", Args("1s")))
		w.create(pod)
		w.pass(time.Minute)
		if status := w.status(pod); status.Phase != corev1.PodFailed || status.Reason != "Unsupported" || status.Message == "" {
			t.Errorf("status %+v", status)
		}
	})
}

// A task does not outlive its process, and its end is not invented.
func TestATaskOfAnEarlierProcess(t *testing.T) {
	inWorld(t, sleeps, func(w *world) {
		pod := nap("was", "1s")
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
			{Name: "a", ContainerID: "task://a", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}},
			{Name: "b", ContainerID: "task://b", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}},
		}}
		w.create(pod)
		w.pass(time.Minute)
		status := w.status(pod)
		if end := status.ContainerStatuses[1].State.Terminated; status.Phase != corev1.PodFailed || end == nil || end.ExitCode != 137 || end.Reason != "ContainerStatusUnknown" {
			t.Errorf("status %+v", status)
		}
	})
}

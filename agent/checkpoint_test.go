package agent_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/agent"
	"github.com/podmill/podmill/checkpoint"
	. "github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/status"
)

// cluster is what an agent has from an API server.
type cluster struct {
	pods     *PodSource
	objects  *Objects
	statuses *StatusSink
}

// join starts an agent that keeps what the cluster tells it.
func (w *world) join(c cluster) {
	w.Helper()
	w.end()
	kept, err := checkpoint.Open(filepath.Join(w.root, "checkpoint"))
	if err != nil {
		w.Fatal(err)
	}
	w.more = []podmill.PodSource{kept.Source(c.pods)}
	w.opts = []agent.Option{agent.WithObjects(kept.Objects(c.objects)), agent.WithStatusSink(kept.Sink(c.statuses))}
	w.start()
}

// away is the cluster of a node that has lost its way to it: lists hang, what is asked for or written fails.
func away() cluster {
	lost := errors.New("no route to host")
	c := cluster{pods: NewPodSource("api"), objects: NewObjects(), statuses: NewStatusSink()}
	c.objects.Fail(lost)
	c.statuses.Fail(func(*corev1.Pod) error { return lost })
	return c
}

// B090, B093: a node that loses power, and its uplink with it, starts its pods from what it knew, and tells once what became of them.
func TestARebootWithoutTheAPI(t *testing.T) {
	inWorld(t, func(w *world) {
		w.file.Replace()
		settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}, Data: map[string]string{"COLOR": "blue"}}
		pod := Pod("web", Container("server", "busybox:1", func(c *corev1.Container) {
			c.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}
		}))
		pod.Annotations = map[string]string{podmill.AnnotationConfigSource: "api"}
		job := Pod("job", Container("work", "busybox:1", Runs("exit 0")), Restart(corev1.RestartPolicyNever))
		online := cluster{pods: NewPodSource("api"), objects: NewObjects(), statuses: NewStatusSink()}
		online.objects.SetConfigMap(settings)
		online.pods.Replace(pod, job)
		w.join(online)
		w.pass(5 * time.Second)
		w.rt.KillProcess(pod.UID, "server", 1)
		w.pass(5 * time.Second)
		before := w.wantPhase(pod, corev1.PodRunning).Status
		w.wantPhase(job, corev1.PodSucceeded)

		w.end()
		w.rt.Reboot()
		w.rt.Log().Reset()
		w.join(away())
		w.pass(time.Minute)
		after := w.wantPhase(pod, corev1.PodRunning).Status
		w.wantPhase(job, corev1.PodSucceeded)
		if got, was := after.ContainerStatuses[0].RestartCount, before.ContainerStatuses[0].RestartCount; got != was+1 || was != 1 {
			t.Errorf("restart count %d after the reboot, %d before", got, was)
		}
		if !after.StartTime.Equal(before.StartTime) {
			t.Errorf("start time %v, before the reboot %v", after.StartTime, before.StartTime)
		}
		if n := w.rt.Log().Count("StartContainer"); n != 1 {
			t.Errorf("%d containers were started, want that of the server\n%s", n, w.rt.Log())
		}

		w.end()
		w.rt.Log().Reset()
		w.join(away())
		w.pass(time.Minute)
		w.wantStory() // an agent that restarts without its API touches nothing

		pod, job = pod.DeepCopy(), job.DeepCopy() // what the API has, it has from before the reboot
		pod.Status, job.Status = before, w.wantPhase(job, corev1.PodSucceeded).Status
		online.pods, online.statuses = NewPodSource("api"), NewStatusSink()
		online.pods.Replace(pod, job)
		w.join(online)
		w.pass(time.Minute)
		w.wantStory()
		if n := len(online.statuses.History(pod.UID)); n != 1 {
			t.Errorf("%d statuses were written when the API was back, want 1", n)
		}
		if got := online.statuses.Status(pod.UID).ContainerStatuses[0].RestartCount; got != 2 {
			t.Errorf("the API is told of %d restarts, want 2", got)
		}
	})
}

// A sink that is wrapped is cleaned up after all the same: the file of a pod that went while the agent was away does not stay.
func TestAWrappedSinkIsCleanedUp(t *testing.T) {
	inWorld(t, func(w *world) {
		kept, err := checkpoint.Open(filepath.Join(w.root, "checkpoint"))
		if err != nil {
			t.Fatal(err)
		}
		files, err := status.NewFileSink(filepath.Join(w.root, "status"))
		if err != nil {
			t.Fatal(err)
		}
		if err := files.UpdateStatus(t.Context(), Pod("old", Container("server", "busybox:1")), &corev1.PodStatus{Phase: corev1.PodRunning}); err != nil {
			t.Fatal(err)
		}
		w.opts = []agent.Option{agent.WithStatusSink(kept.Sink(files))}
		w.start()
		w.file.Replace()
		w.pass(10 * time.Second)
		if left, err := files.Load(); err != nil || len(left) > 0 {
			t.Errorf("files are left: %v, %v", left, err)
		}
	})
}

// Silence deletes nothing, not after days, and what is deleted while the node is away is stopped when it hears of it.
func TestAPodThatIsDeletedWhileTheNodeIsAwayRunsUntilItHearsOfIt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.file.Replace()
		pod := Pod("web", Container("server", "busybox:1"), Grace(5*time.Second))
		online := cluster{pods: NewPodSource("api"), objects: NewObjects(), statuses: NewStatusSink()}
		online.pods.Replace(pod)
		w.join(online)
		w.pass(5 * time.Second)
		c := away()
		w.join(c)
		w.pass(72 * time.Hour)
		w.wantPhase(pod, corev1.PodRunning)
		if n := w.rt.Log().Count("StopContainer"); n != 0 {
			t.Errorf("%d containers were stopped while the API was silent", n)
		}
		c.statuses.Fail(nil)
		c.pods.Replace()
		w.pass(30 * time.Second)
		w.wantGone(pod)
	})
}

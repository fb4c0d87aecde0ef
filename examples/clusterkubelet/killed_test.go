package main

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/testenv"
	"github.com/podmill/podmill/internal/testenv/testapi"
	"github.com/podmill/podmill/podmilltest"
)

// An API server that is killed and started again in the middle of a roll-over, where new pods start and old ones end, and of a Job's end, beside which a sidecar runs. Nothing is
// done twice, and what was missed is told.
func TestTheAPIServerIsKilledInTheMiddle(t *testing.T) {
	plane := testenv.OwnAPIServer(t)
	c := newNode(t, testapi.In(t, plane.ControlPlane))
	c.start()
	const pods = 3
	polite := podmilltest.Container("main", busybox, podmilltest.Runs("trap 'sleep 1; exit 0' TERM; sleep 100000 & wait"))
	for i := range pods {
		c.CreatePod(podmilltest.Pod(fmt.Sprintf("x/old-%d", i), polite, podmilltest.Grace(30*time.Second)))
	}
	c.CreatePod(podmilltest.Pod("x/job", podmilltest.Restart(corev1.RestartPolicyNever), podmilltest.Grace(10*time.Second),
		podmilltest.Sidecar("beside", busybox, podmilltest.Runs("trap 'exit 0' TERM; sleep 100000 & wait")),
		podmilltest.Container("main", busybox, podmilltest.Runs("while [ ! -e /end ]; do sleep 0.1; done"))))
	var old []*corev1.Pod
	for i := range pods {
		old = append(old, c.reaches(fmt.Sprintf("old-%d", i), "is ready", ready))
	}
	job := c.reaches("job", "is ready", ready)

	for i := range pods {
		c.CreatePod(sleeper(fmt.Sprintf("new-%d", i)))
		c.Delete("pods", old[i].Name, -1)
	}
	plane.Kill(t)
	c.sh(job, "main", "touch /end")
	c.Eventually("the job's containers have ended", func() bool {
		seen := c.seen(job.UID)
		for _, name := range []string{"main", "beside"} {
			if container := seen.Container(name); container == nil || container.State != podmill.StateExited {
				return false
			}
		}
		return true
	})
	plane.Start(t)

	done := c.reaches("job", "is complete", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodSucceeded })
	for _, s := range append(done.Status.ContainerStatuses, done.Status.InitContainerStatuses...) {
		if end := s.State.Terminated; end == nil || end.ExitCode != 0 || s.RestartCount != 0 {
			t.Errorf("container %s of the job is %+v", s.Name, s)
		}
	}
	for i := range pods {
		pod := c.reaches(fmt.Sprintf("new-%d", i), "is ready", ready)
		if seen := c.seen(pod.UID); len(seen.Sandboxes) != 1 || len(seen.Containers) != 1 || pod.Status.ContainerStatuses[0].RestartCount != 0 {
			t.Errorf("pod %s has %d sandboxes and %d containers, and is %+v", pod.Name, len(seen.Sandboxes), len(seen.Containers), pod.Status)
		}
		c.gone(old[i].Name)
		if !c.seen(old[i].UID).Empty() {
			t.Errorf("the API has forgotten pod %s, and the runtime holds something of it", old[i].Name)
		}
	}
}

package main

import (
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podmill/podmill/internal/testenv/apifault"
	"github.com/podmill/podmill/podmilltest"
)

// Whatever goes wrong with whichever request, three times in a row, in the middle of a pod's start or of its removal: the pod comes up, its status is told, it goes, and nothing
// is done twice.
func TestAFaultInTheMiddle(t *testing.T) {
	effects := map[string]apifault.Effect{
		"409":     apifault.Status(http.StatusConflict, metav1.StatusReasonConflict),
		"410":     apifault.Status(http.StatusGone, metav1.StatusReasonExpired),
		"429":     apifault.RetryAfter(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, 2),
		"500":     apifault.Status(http.StatusInternalServerError, metav1.StatusReasonInternalError),
		"503":     apifault.RetryAfter(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, 1),
		"refused": apifault.Refuse(),
		"lost":    apifault.Lose(),
		"hangs":   apifault.Hang(),
		"slow":    apifault.Slow(3 * time.Second),
	}
	for name, effect := range effects {
		for _, on := range []apifault.Request{
			{Verb: "watch", Resource: "pods"}, {Verb: "watch", Resource: "configmaps"}, {Verb: "watch", Resource: "services"},
			{Verb: "create", Resource: "serviceaccounts", Subresource: "token"}, {Verb: "patch", Resource: "pods", Subresource: "status"},
			{Verb: "delete", Resource: "pods"}, {Verb: "create", Resource: "events"}, {Verb: "patch", Resource: "nodes", Subresource: "status"},
			{Verb: "update", Resource: "leases"}, {},
		} {
			t.Run(name+" "+on.String(), func(t *testing.T) {
				inVirtualTime(t, func(v *virtual) {
					v.pass(10 * time.Second)
					trouble := func() {
						v.way.Clear()
						v.way.Add(apifault.Fault{On: on, Times: 3, Effect: effect})
						v.way.Cut() // so that watches are asked for anew
					}
					trouble()
					created := v.api.CreatePod(needy("p", podmilltest.Grace(2*time.Second)))
					pod := v.says(3*time.Minute, "p")
					if pod.UID != created.UID || pod.Status.Phase != corev1.PodRunning {
						t.Errorf("status %+v", pod.Status)
					}
					trouble()
					v.api.Delete("pods", "x", "p", -1)
					v.gone(5*time.Minute, pod)
					v.honest(pod)
					for _, op := range []podmilltest.Op{podmilltest.OpRunSandbox, podmilltest.OpCreateContainer, podmilltest.OpStartContainer} {
						if n := v.rt.Log().Count(op); n != 1 {
							t.Errorf("%d times %s\n%s", n, op, v.rt.Log())
						}
					}
				})
			})
		}
	}
}

// A watch that is open and silent is noticed within its three minutes, whatever it should have told: a pod that is new, one that is deleted, a ConfigMap that has changed.
func TestWatchesThatStall(t *testing.T) {
	inVirtualTime(t, func(v *virtual) {
		v.api.CreatePod(needy("old", podmilltest.Grace(time.Second)))
		old := v.says(time.Minute, "old")
		v.way.Mute()
		v.api.CreatePod(needy("new"))
		v.api.Delete("pods", "x", "old", -1)
		v.pass(30 * time.Second)
		if v.api.Pod("x", "old") == nil || ready(v.api.Pod("x", "new")) {
			t.Error("the watches were not silent")
		}
		v.gone(4*time.Minute, old)
		v.says(time.Minute, "new")
	})
}

// While the server is away for hours nothing of what runs is touched, containers are restarted as ever, and when it is back what has happened is told, and what was missed is done.
func TestTheServerIsAwayForHours(t *testing.T) {
	inVirtualTime(t, func(v *virtual) {
		for _, name := range []string{"stays", "dies", "deleted", "replaced"} {
			v.api.CreatePod(needy(name, podmilltest.Grace(time.Second)))
		}
		stays, dies := v.says(time.Minute, "stays"), v.says(time.Minute, "dies")
		deleted, replaced := v.says(time.Minute, "deleted"), v.says(time.Minute, "replaced")
		v.way.Add(apifault.Fault{Effect: apifault.Refuse()})
		v.way.Cut()
		v.pass(time.Hour)
		v.api.Delete("pods", "x", "deleted", -1)
		v.api.Delete("pods", "x", "replaced", 0)
		v.api.CreatePod(needy("replaced"))
		v.api.CreatePod(needy("new"))
		v.rt.KillProcess(dies.UID, "main", 3)
		v.pass(2 * time.Hour)
		if n := v.rt.Log().Count(podmilltest.OpStopContainer); n != 0 {
			t.Errorf("%d containers were stopped while the server was away\n%s", n, v.rt.Log())
		}
		v.api.Forget()
		v.way.Take()
		v.way.Clear()
		v.gone(3*time.Minute, deleted)
		v.gone(3*time.Minute, replaced)
		v.says(time.Minute, "new")
		if pod := v.says(time.Minute, "replaced"); pod.UID == replaced.UID {
			t.Error("the pod that was replaced is still there")
		}
		if pod := v.api.Pod("x", "stays"); pod.ResourceVersion != stays.ResourceVersion {
			t.Errorf("the pod to which nothing happened was written: %+v", pod.Status)
		}
		restarted := func() bool { return v.api.Pod("x", "dies").Status.ContainerStatuses[0].RestartCount == 1 }
		v.until(2*time.Minute, "it is told that a container was restarted", restarted)
		v.pass(time.Minute)
		now := v.api.Pod("x", "dies").Status.ContainerStatuses[0]
		if now.LastTerminationState.Terminated == nil || now.LastTerminationState.Terminated.ExitCode != 3 || !now.Ready {
			t.Errorf("the container that died is %+v", now)
		}
		if n := count(v.way.Take(), apifault.Request{Verb: "patch", Resource: "pods", Subresource: "status", Name: "dies"}); n != 1 {
			t.Errorf("%d statuses were written of the pod that died once, want 1", n)
		}
	})
}

// B036: a pod is deleted by force, and another of its name is created, while the first still stops: it stops in its own time, the second starts, and no status of the one is told
// of the other.
func TestANameThatComesBack(t *testing.T) {
	inVirtualTime(t, func(v *virtual) {
		stubborn := needy("web", podmilltest.Grace(20*time.Second))
		stubborn.Spec.Containers[0].Command = podmilltest.Script("trap '' TERM; sleep 1000000 & wait")
		v.api.CreatePod(stubborn)
		first := v.says(time.Minute, "web")
		v.api.Delete("pods", "x", "web", -1)
		v.pass(5 * time.Second)
		v.api.Delete("pods", "x", "web", 0)
		second := v.api.CreatePod(needy("web"))
		if again := v.says(time.Minute, "web"); again.UID != second.UID || again.Status.ContainerStatuses[0].RestartCount != 0 {
			t.Errorf("the second pod is %+v", again)
		}
		v.gone(time.Minute, first)
		v.pass(time.Minute)
		if again := v.api.Pod("x", "web"); again == nil || again.UID != second.UID || !ready(again) {
			t.Errorf("the second pod has become %+v", again)
		}
		v.honest(first)
		v.honest(second)
	})
}

// A pod that was deleted by force, and is another node's by now, is nobody's business here: nothing is asked about it for ever.
func TestANameThatComesBackElsewhere(t *testing.T) {
	inVirtualTime(t, func(v *virtual) {
		v.api.CreatePod(needy("web", podmilltest.Grace(10*time.Second)))
		first := v.says(time.Minute, "web")
		v.api.Delete("pods", "x", "web", -1)
		v.api.Delete("pods", "x", "web", 0)
		elsewhere := needy("web")
		elsewhere.Spec.NodeName = "m"
		v.api.Create("pods", elsewhere)
		v.until(time.Minute, "the first is gone", func() bool { return v.seen(first).Empty() })
		v.pass(time.Minute)
		v.way.Take()
		v.pass(time.Hour)
		for _, r := range v.way.Take() {
			if r.Name == "web" {
				t.Errorf("it is asked: %v", r)
			}
		}
		if pod := v.api.Pod("x", "web"); pod == nil || pod.Status.Phase != corev1.PodPending {
			t.Errorf("the other node's pod is %+v", pod)
		}
	})
}

// A pod that is deleted while its image is pulled goes at once, and is never started.
func TestDeletedWhilePulling(t *testing.T) {
	for _, grace := range []int64{-1, 0} {
		inVirtualTime(t, func(v *virtual) {
			v.stop()
			v.use = podmilltest.Faulty(v.rt, podmilltest.Fault{On: podmilltest.OpPullImage, Effect: podmilltest.Hang(nil)})
			v.start()
			pod := needy("p")
			pod.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways
			pod = v.api.CreatePod(pod)
			v.until(time.Minute, "the image is pulled", func() bool { return len(v.seen(pod).Sandboxes) == 1 })
			v.pass(10 * time.Second)
			v.api.Delete("pods", "x", "p", grace)
			v.gone(10*time.Second, pod)
			if n := v.rt.Log().Count(podmilltest.OpStartContainer); n != 0 {
				t.Errorf("%d containers were started", n)
			}
		})
	}
}

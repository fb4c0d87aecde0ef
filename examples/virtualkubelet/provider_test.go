package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	. "github.com/podmill/podmill/podmilltest"
)

func exec(script string) corev1.ProbeHandler {
	return corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: Script(script)}}
}

func hook(script string) *corev1.LifecycleHandler {
	return &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: Script(script)}}
}

// shop is a pod with what virtual-kubelet by itself has none of: an init container, a sidecar that is waited for, a readiness probe, hooks and
// a container that crashes once.
func shop() *corev1.Pod {
	return Pod("shop/cart", Grace(10*time.Second),
		InitContainer("migrate", "busybox:1", Runs("sleep 1")),
		Sidecar("proxy", "busybox:1", Runs("sleep inf"), func(c *corev1.Container) {
			c.StartupProbe = &corev1.Probe{ProbeHandler: exec("true"), InitialDelaySeconds: 2, PeriodSeconds: 1}
		}),
		Container("web", "busybox:1", Runs("sleep inf"), func(c *corev1.Container) {
			c.ReadinessProbe = &corev1.Probe{ProbeHandler: exec("true"), InitialDelaySeconds: 3, PeriodSeconds: 1}
			c.Lifecycle = &corev1.Lifecycle{PostStart: hook("true"), PreStop: hook("sleep 2")}
		}),
		Container("flaky", "busybox:1", Runs("sleep 1; exit 3")))
}

// A pod lives as with a kubelet, and virtual-kubelet is told how.
func TestAPodLivesAsWithAKubelet(t *testing.T) {
	inWorld(t, inMemory, func(w *world) {
		pod := shop()
		w.create(pod)
		w.pass(4 * time.Second)
		if ready(w.status(pod)) {
			t.Error("the pod is ready before its readiness probe has said so")
		}
		w.pass(10 * time.Second)
		status := w.status(pod)
		if status.Phase != corev1.PodRunning || status.ContainerStatuses[1].RestartCount == 0 {
			t.Errorf("status %+v, want it Running, and flaky restarted", status)
		}
		if !status.ContainerStatuses[0].Ready || !*status.InitContainerStatuses[1].Started {
			t.Errorf("web or proxy is not ready: %+v", status)
		}
		w.wantInOrder(
			"RunSandbox shop/cart", "StartContainer shop/cart migrate#0", "shop/cart migrate#0 exited code=0",
			"StartContainer shop/cart proxy#0", "Exec shop/cart proxy#0", // its startup probe
			"StartContainer shop/cart web#0", "shop/cart flaky#0 exited code=3", "StartContainer shop/cart flaky#1",
		)
		w.remove(pod, 10*time.Second)
		w.pass(30 * time.Second)
		w.wantInOrder("StopContainer shop/cart web#0", "shop/cart web#0 exited", "StopContainer shop/cart proxy#0", "RemoveSandbox shop/cart")
	})
}

func ready(status corev1.PodStatus) bool {
	return slices.ContainsFunc(status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// The API has a pod's last status, with the exit codes, before it is let go; and it is let go as soon as it is done. B068
func TestADeletionIsConfirmedAfterTheLastStatus(t *testing.T) {
	inWorld(t, inMemory, func(w *world) {
		pod := Pod("web", Container("server", "busybox:1", Runs("trap 'exit 7' TERM; sleep inf & wait")))
		w.create(pod)
		w.pass(time.Second)
		w.remove(pod, 30*time.Second)
		w.pass(time.Second)
		if last := w.api.told[len(w.api.told)-1]; last != "web/"+string(pod.UID)+": Failed" {
			t.Errorf("the last status was %s, want that the pod failed", last)
		}
		if !slices.Equal(w.api.confirmed, []types.UID{pod.UID}) || w.api.Pod("default", "web") != nil {
			t.Errorf("confirmed %v", w.api.confirmed)
		}
		if err := w.DeletePod(t.Context(), pod); err != nil { // as virtual-kubelet does when the API has lost it
			t.Error(err)
		}
		if err := w.DeletePod(t.Context(), pod); !errdefs.IsNotFound(err) {
			t.Errorf("DeletePod of a pod that is forgotten: %v, want not found", err)
		}
	})
}

// A pod that was forced out of the API and put back under its name is another: the old one ends, the new one runs, and no status crosses over. B036
func TestAPodThatIsReplaced(t *testing.T) {
	inWorld(t, inMemory, func(w *world) {
		stubborn := Container("server", "busybox:1", Runs("trap '' TERM; sleep inf"))
		old, young := Pod("web", UID("old"), stubborn), Pod("web", UID("young"), stubborn)
		w.create(old)
		w.pass(time.Second)
		w.create(young)
		w.pass(time.Second)
		told := len(w.api.told)
		w.pass(time.Minute)
		if status := w.status(young); status.Phase != corev1.PodRunning {
			t.Errorf("the new pod is %+v", status)
		}
		for _, line := range w.api.told[told:] {
			if strings.Contains(line, "old") {
				t.Errorf("a status of the old pod was told: %s", line)
			}
		}
		w.wantInOrder("RunSandbox default/web", "RunSandbox default/web", "RemoveSandbox")
		w.wantInOrder("StopContainer default/web server#0 grace=30s", "RemoveSandbox")
		if pods, _ := w.GetPods(t.Context()); len(pods) != 1 || pods[0].UID != "young" {
			t.Errorf("pods %v", pods)
		}
	})
}

// What an earlier process left of a pod that the API does not know any more is taken down, and what it knows runs on.
func TestWhatAnEarlierProcessLeft(t *testing.T) {
	inWorld(t, inMemory, func(w *world) {
		kept, lost := Pod("kept", Container("a", "busybox:1")), Pod("lost", Container("a", "busybox:1"))
		w.create(kept)
		w.create(lost)
		w.pass(time.Second)
		w.stop()
		w.api.lose(lost)
		before := w.status(kept)
		w.start()
		w.pass(time.Minute)
		w.wantInOrder("StopContainer default/lost a#0", "RemoveSandbox default/lost")
		if diff := cmp.Diff(before, w.status(kept)); diff != "" || w.rt.Log().Count("StopContainer") != 1 {
			t.Errorf("the pod that stays was touched, its status (-before +after):\n%s\n%s", diff, w.rt.Log())
		}
	})
}

// A container whose image changes is replaced, and the status goes on.
func TestUpdatePod(t *testing.T) {
	inWorld(t, inMemory, func(w *world) {
		pod := Pod("web", Container("server", "busybox:1"))
		w.create(pod)
		w.pass(time.Second)
		if err := w.UpdatePod(t.Context(), Edit(pod, func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "busybox:2" })); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		server := w.status(pod).ContainerStatuses[0]
		if !strings.HasSuffix(server.Image, "/busybox:2") || server.RestartCount != 1 || server.State.Running == nil {
			t.Errorf("the container is %+v", server)
		}
		if found, err := w.GetPod(t.Context(), "default", "web"); err != nil || found.Spec.Containers[0].Image != "busybox:2" {
			t.Errorf("the pod is %+v, error %v", found, err)
		}
	})
}

// GetPodStatus has the newest status, and knows nothing of pods that are not here.
func TestGetPodStatus(t *testing.T) {
	inWorld(t, inMemory, func(w *world) {
		if _, err := w.GetPodStatus(t.Context(), "default", "web"); !errdefs.IsNotFound(err) {
			t.Errorf("error %v, want not found", err)
		}
		pod := Pod("web", Container("server", "busybox:1"))
		w.create(pod)
		w.pass(time.Second)
		status, err := w.GetPodStatus(t.Context(), "default", "web")
		if err != nil || status.Phase != corev1.PodRunning || status.PodIP == "" {
			t.Errorf("status %+v, error %v", status, err)
		}
	})
}

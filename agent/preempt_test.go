package agent_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/admission"
	"github.com/podmill/podmill/agent"
	. "github.com/podmill/podmill/podmilltest"
)

// B083: a critical pod runs at once though the runtime cannot stop yet the one that makes room for it. That one is stopped when it can be, and says why.
func TestACriticalPodGetsItsRoom(t *testing.T) {
	inWorld(t, func(w *world) {
		asks := func(cpu string) ContainerOption {
			return func(c *corev1.Container) {
				c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
			}
		}
		faulty, api := Faulty(w.rt), NewPodSource("api")
		w.use, w.more = faulty, []podmill.PodSource{api}
		w.opts = []agent.Option{agent.WithAdmission(func() admission.Node {
			return admission.Node{Name: "n", OS: "linux", Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}
		})}
		w.start()
		victim := Pod("victim", Container("server", "busybox:1", asks("1")), Grace(0))
		api.Replace(victim)
		w.file.Replace()
		w.pass(time.Second)
		w.wantPhase(victim, corev1.PodRunning)

		faulty.Add(Fault{On: OpStopContainer, Pod: victim.UID, Effect: Fail(errors.New("shim is busy"))})
		critical := Pod("critical", static, Container("server", "busybox:1", asks("500m")))
		w.file.Replace(critical)
		w.pass(10 * time.Second)
		w.wantPhase(critical, corev1.PodRunning)
		w.wantPhase(victim, corev1.PodRunning)

		faulty.Clear()
		w.pass(5 * time.Minute)
		got := w.wantPhase(victim, corev1.PodFailed).Status
		disrupted := func(c corev1.PodCondition) bool {
			return c.Type == corev1.DisruptionTarget && c.Reason == corev1.PodReasonTerminationByKubelet
		}
		if got.Reason != "Preempting" || got.Message != "Preempted in order to admit critical pod" || !slices.ContainsFunc(got.Conditions, disrupted) {
			t.Errorf("the victim's status is %+v", got)
		}
		if !slices.Contains(w.events.Reasons(), "Preempting") {
			t.Errorf("nobody is told\n%s", w.events)
		}
		w.wantPhase(critical, corev1.PodRunning)
	})
}

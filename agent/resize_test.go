package agent_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podmill/podmill/admission"
	"github.com/podmill/podmill/agent"
	. "github.com/podmill/podmill/podmilltest"
)

func wants(cpu string) PodOption {
	return func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
}

func conditionOf(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// A resize waits until another pod has gone, over a restart of the agent, and is carried out then and not with the next resync. The spec that people see is what they have asked for.
func TestAResizeIsDeferredUntilAnotherPodGoes(t *testing.T) {
	inWorld(t, func(w *world) {
		w.opts = append(w.opts, agent.WithAdmission(func() admission.Node {
			return admission.Node{Name: "n", OS: "linux", Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}}
		}))
		web, other := Pod("web", Container("server", "busybox:1"), wants("1")), Pod("other", Container("server", "busybox:1"), Grace(time.Second), wants("2"))
		w.start()
		w.file.Replace(web, other)
		w.pass(2 * time.Second)
		web = Edit(web, wants("3"))
		w.file.Upsert(web)
		w.pass(time.Second)
		for range 2 {
			pod := w.wantPhase(web, corev1.PodRunning)
			c := conditionOf(pod, corev1.PodResizePending)
			if c == nil || c.Reason != corev1.PodReasonDeferred || c.Message != "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000" {
				t.Errorf("the condition is %+v", c)
			}
			if s := pod.Status.ContainerStatuses[0]; s.AllocatedResources.Cpu().String() != "1" || s.Resources.Requests.Cpu().String() != "1" || pod.Spec.Containers[0].Resources.Requests.Cpu().String() != "3" {
				t.Errorf("it has %v, allocated %v, and wants %v", s.Resources, s.AllocatedResources, pod.Spec.Containers[0].Resources)
			}
			w.start()
			w.pass(2 * time.Second)
		}
		w.file.Delete(other)
		w.pass(3 * time.Second)
		pod := w.wantPhase(web, corev1.PodRunning)
		s := pod.Status.ContainerStatuses[0]
		if s.RestartCount != 0 || s.AllocatedResources.Cpu().String() != "3" || s.Resources.Requests.Cpu().String() != "3" {
			t.Errorf("when the other has gone: %+v", s)
		}
		for _, kind := range []corev1.PodConditionType{corev1.PodResizePending, corev1.PodResizeInProgress} {
			if c := conditionOf(pod, kind); c != nil {
				t.Errorf("it is over, and there is %+v", c)
			}
		}
		if n := w.rt.Log().Count(OpResizeContainer); n != 1 {
			t.Errorf("%d resizes, want 1\n%s", n, w.rt.Log())
		}
		w.file.Upsert(Edit(web, wants("5")))
		w.pass(time.Second)
		if c := conditionOf(w.pod(web), corev1.PodResizePending); c == nil || c.Reason != corev1.PodReasonInfeasible || c.Message != "Node didn't have enough capacity: cpu, requested: 5000, capacity: 4000" {
			t.Errorf("more than the node has: %+v", c)
		}
	})
}

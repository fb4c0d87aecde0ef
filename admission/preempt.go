package admission

import (
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podmill/podmill/internal/lifecycle"
	"github.com/podmill/podmill/internal/qos"
)

// systemCritical is the lowest priority that the system keeps for itself: that of the class system-cluster-critical.
const systemCritical = 2_000_000_000

// Preempt returns which of the others have to end for a critical pod to run, and why it cannot run where that does not help either. A pod that is not critical is only
// checked, as [Check] does; one that fits needs no victims.
//
// Critical are static pods and those of the system's own priorities, as in the kubelet. They have others end that are not critical or, among critical ones, of a
// lower priority, and only for want of resources. Of those that lack least of what is needed and ask for least themselves as few as possible are chosen, of the class
// Guaranteed only what the others cannot make up for, then of Burstable, and then of BestEffort.
func Preempt(node *Node, others []*corev1.Pod, pod *corev1.Pod) (victims []*corev1.Pod, rejection *Rejection) {
	others = beside(others, pod)
	lacking := shortages(node, others, pod)
	if len(lacking) == 0 || !isCritical(pod) {
		return nil, Check(node, others, pod)
	}
	if r := first(node, others, pod, checkShutdown, checkOS, checkAffinity, checkName, checkPorts, checkTaints); r != nil {
		return nil, r // it would end others for nothing
	}
	classes := map[corev1.PodQOSClass][]*corev1.Pod{}
	for _, other := range others {
		if yields(other, pod) {
			class := qos.Class(other)
			classes[class] = append(classes[class], other)
		}
	}
	guaranteed, burstable, bestEffort := classes[corev1.PodQOSGuaranteed], classes[corev1.PodQOSBurstable], classes[corev1.PodQOSBestEffort]
	needed := needs(lacking)
	if left := needed.without(slices.Concat(guaranteed, burstable, bestEffort)); len(left) > 0 {
		return nil, &Rejection{"UnexpectedAdmissionError", "Unexpected error while attempting to recover from admission failure: " +
			"preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: " + left.String()}
	}
	victims = needed.without(slices.Concat(bestEffort, burstable)).from(guaranteed)
	victims = append(victims, needed.without(slices.Concat(bestEffort, victims)).from(burstable)...)
	return append(victims, needed.without(victims).from(bestEffort)...), nil
}

func isCritical(pod *corev1.Pod) bool {
	return lifecycle.Static(pod.Annotations) || pod.Spec.Priority != nil && *pod.Spec.Priority >= systemCritical
}

// yields reports whether a pod has to end if a critical one needs what it has.
func yields(pod, critical *corev1.Pod) bool {
	if !isCritical(pod) {
		return true
	}
	a, b := pod.Spec.Priority, critical.Spec.Priority
	return a != nil && b != nil && *a < *b
}

// need is how much of a resource has to become free.
type need struct {
	name   corev1.ResourceName
	amount resource.Quantity
}

type needed []need

func needs(lacking []shortage) needed {
	all := make(needed, len(lacking))
	for i := range lacking {
		all[i] = need{lacking[i].name, lacking[i].missing()}
	}
	return all
}

// without returns what is needed still when pods have ended.
func (n needed) without(pods []*corev1.Pod) needed {
	var left needed
	for _, one := range n {
		amount := one.amount.DeepCopy()
		for _, pod := range pods {
			amount.Sub(request(pod, one.name))
		}
		if amount.Sign() > 0 {
			left = append(left, need{one.name, amount})
		}
	}
	return left
}

// from chooses pods that have together what is needed; all of them have it. The one that comes nearest to that goes first and, of those that come as near, the smallest.
func (n needed) from(pods []*corev1.Pod) []*corev1.Pod {
	pods = slices.Clone(pods)
	var chosen []*corev1.Pod
	for len(n) > 0 && len(pods) > 0 {
		best := 0
		for i, pod := range pods {
			here, there := n.distance(pod), n.distance(pods[best])
			if here < there || here == there && smaller(pod, pods[best]) {
				best = i
			}
		}
		chosen = append(chosen, pods[best])
		n = n.without(pods[best : best+1])
		pods = slices.Delete(pods, best, best+1)
	}
	return chosen
}

// distance says how far a pod is from having all that is needed: the sum over the resources of the squares of the parts that it lacks.
func (n needed) distance(pod *corev1.Pod) float64 {
	var sum float64
	for _, one := range n {
		has, all := request(pod, one.name), one.amount
		sum += math.Pow(max(0, 1-has.AsApproximateFloat64()/all.AsApproximateFloat64()), 2)
	}
	return sum
}

// smaller reports whether a pod asks for less memory than another or, of as much, for less CPU.
func smaller(pod, than *corev1.Pod) bool {
	for _, name := range []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceCPU} {
		a, b := request(pod, name), request(than, name)
		if c := a.Cmp(b); c != 0 {
			return c < 0
		}
	}
	return false
}

// String is in the words of the kubelet.
func (n needed) String() string {
	var s strings.Builder
	for _, one := range n {
		value := one.amount.Value()
		if one.name == corev1.ResourceCPU {
			value = one.amount.MilliValue()
		}
		fmt.Fprintf(&s, "(res: %s, q: %d), ", one.name, value)
	}
	return "[" + s.String() + "]"
}

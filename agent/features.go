package agent

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/feature"
	"github.com/podmill/podmill/podspec"
)

// featured is a part of an agent that says what it serves.
type featured interface{ Features() podmill.Features }

// Features says which fields of a PodSpec this agent serves: what the blocks say that it is composed of, and the runtime. A runtime or a volume
// mounter that does not say is taken to serve whatever they are told of.
func (a *Agent) Features() podmill.Features { return a.features }

// Refused says which fields of a pod this agent cannot serve. Nothing of such a pod is started: its containers wait with the reason
// CreateContainerConfigError, and the fields in the message.
func (a *Agent) Refused(pod *corev1.Pod) field.ErrorList { return a.checker.Refused(pod) }

func (a *Agent) refusal(pod *corev1.Pod) string {
	if errs := a.Refused(pod); len(errs) > 0 {
		return errs.ToAggregate().Error()
	}
	return ""
}

// elsewhere are the fields that are not for a node to do something about.
const elsewhere = `
nodeName nodeSelector affinity tolerations topologySpreadConstraints schedulerName schedulingGates schedulingGroup ~ the scheduler has seen to it
priority priorityClassName preemptionPolicy ~ the scheduler has seen to it; with admission critical pods have others end
serviceAccountName serviceAccount automountServiceAccountToken ~ an API server makes a volume of it
readinessGates.conditionType ~ others set the condition, and readiness waits for it
evictionResponders ~ whoever evicts the pod asks them
resourceClaims ! devices cannot be claimed yet
`

func join(runtime podmill.Runtime, volumes podmill.VolumeMounter, blocks ...featured) podmill.Features {
	all := feature.Parse(elsewhere)
	for _, block := range blocks {
		all.Add(block.Features())
	}
	r, says := podmill.As[featured](runtime)
	if says {
		all.Add(r.Features())
	}
	if v, ok := volumes.(featured); ok {
		all.Add(v.Features())
	} else {
		all.Add(podmill.Features{"volumes": {Why: "the agent's own mounter makes them"}})
	}
	if !says {
		for _, field := range podspec.Fields() {
			if _, said := all.Of(field); !said {
				all[field] = podmill.Feature{}
			}
		}
	}
	return all
}

package syncloop

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// merged is what all sources want. A pod that several want is that of the first of them.
type merged []wanted

// wanted is what one source wants.
type wanted struct {
	source string
	synced bool
	pods   map[types.UID]*corev1.Pod
}

// outcome is what an update of a source makes of the merged set.
type outcome struct {
	changes   []change
	conflicts []conflict
	invalid   int // pods without a UID
}

// change is a pod that is wanted from now on or otherwise than before; where pod is nil, one that is not wanted any more.
type change struct {
	uid types.UID
	pod *corev1.Pod
	// same says that it is a newer version which differs in nothing that a node acts on.
	same bool
}

// conflict is a pod that has come to be wanted by two sources.
type conflict struct {
	pod           *corev1.Pod // the one that is ignored
	kept, ignored string      // sources
}

func newMerged(sources []podmill.PodSource) merged {
	m := make(merged, len(sources))
	for i, s := range sources {
		m[i] = wanted{source: s.Name(), pods: map[types.UID]*corev1.Pod{}}
	}
	return m
}

// apply takes in an update of a source. Its cost depends on the update, and for a replacement on what the source wanted before.
func (m merged) apply(source int, u podmill.PodUpdate) outcome {
	var out outcome
	own := &m[source]
	if u.Op == podmill.ReplacePods {
		own.synced = true
		still := make(map[types.UID]bool, len(u.Pods))
		for _, pod := range u.Pods {
			if pod != nil {
				still[pod.UID] = true
			}
		}
		for uid := range own.pods {
			if !still[uid] {
				m.drop(&out, own, uid)
			}
		}
	}
	for _, pod := range u.Pods {
		switch {
		case pod == nil || pod.UID == "":
			out.invalid++
		case u.Op == podmill.DeletePods:
			m.drop(&out, own, pod.UID)
		default:
			m.put(&out, own, pod)
		}
	}
	return out
}

func (m merged) put(out *outcome, own *wanted, pod *corev1.Pod) {
	known := own.pods[pod.UID]
	if known == pod {
		return
	}
	before, owner := m.find(pod.UID)
	own.pods[pod.UID] = pod
	after, winner := m.find(pod.UID)
	out.differ(pod.UID, before, after)
	switch {
	case known != nil || owner == nil: // nothing new
	case winner == own:
		out.conflicts = append(out.conflicts, conflict{pod: before, kept: own.source, ignored: owner.source})
	default:
		out.conflicts = append(out.conflicts, conflict{pod: pod, kept: winner.source, ignored: own.source})
	}
}

func (m merged) drop(out *outcome, own *wanted, uid types.UID) {
	before, _ := m.find(uid)
	delete(own.pods, uid)
	after, _ := m.find(uid)
	out.differ(uid, before, after)
}

// differ notes what has become of a pod in the merged set.
func (out *outcome) differ(uid types.UID, before, after *corev1.Pod) {
	if before != after {
		out.changes = append(out.changes, change{uid: uid, pod: after, same: before != nil && after != nil && same(before, after)})
	}
}

// find returns the pod of that UID, and whose it is.
func (m merged) find(uid types.UID) (*corev1.Pod, *wanted) {
	for i := range m {
		if pod := m[i].pods[uid]; pod != nil {
			return pod, &m[i]
		}
	}
	return nil, nil
}

// synced reports whether every source that could want a pod is synced: the one of that name or, where there is none, all.
func (m merged) synced(source string) bool {
	all, named, ok := len(m) > 0, false, true
	for i := range m {
		all = all && m[i].synced
		if m[i].source == source {
			named, ok = true, ok && m[i].synced
		}
	}
	return all || named && ok
}

// same reports whether two versions of a pod are the same to a node: spec, labels, annotations, deletion, and what others say of its readiness
// gates. When a source has seen a pod
// says nothing about the pod.
func same(a, b *corev1.Pod) bool {
	if a.ResourceVersion != "" && a.ResourceVersion == b.ResourceVersion {
		return true
	}
	return a.DeletionTimestamp.Equal(b.DeletionTimestamp) &&
		equality.Semantic.DeepEqual(a.DeletionGracePeriodSeconds, b.DeletionGracePeriodSeconds) &&
		equality.Semantic.DeepEqual(a.Labels, b.Labels) &&
		sameAnnotations(a.Annotations, b.Annotations) &&
		equality.Semantic.DeepEqual(&a.Spec, &b.Spec) && sameGates(a, b)
}

// sameGates reports whether the conditions that a pod's readiness gates wait for are the same in both versions.
func sameGates(a, b *corev1.Pod) bool {
	is := func(pod *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
		for i := range pod.Status.Conditions {
			if pod.Status.Conditions[i].Type == kind {
				return pod.Status.Conditions[i].Status
			}
		}
		return ""
	}
	for _, gate := range a.Spec.ReadinessGates {
		if is(a, gate.ConditionType) != is(b, gate.ConditionType) {
			return false
		}
	}
	return true
}

func sameAnnotations(a, b map[string]string) bool {
	more := 0
	for key, value := range a {
		if key == podmill.AnnotationConfigSeen {
			continue
		}
		if other, ok := b[key]; !ok || other != value {
			return false
		}
		more++
	}
	for key := range b {
		if key != podmill.AnnotationConfigSeen {
			more--
		}
	}
	return more == 0
}

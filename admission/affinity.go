package admission

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// checkAffinity looks at the node selector and at what of the node affinity is required.
func checkAffinity(node *Node, _ []*corev1.Pod, pod *corev1.Pod) *Rejection {
	mismatch := failed("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
	for key, value := range pod.Spec.NodeSelector {
		if has, ok := node.Labels[key]; !ok || has != value {
			return mismatch
		}
	}
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil {
		return nil
	}
	required := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required != nil && !slices.ContainsFunc(required.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool { return matches(&term, node) }) {
		return mismatch
	}
	return nil
}

// matches reports whether a node has all that a term asks for. A term that asks for nothing matches no node, and one that cannot be read neither.
func matches(term *corev1.NodeSelectorTerm, node *Node) bool {
	if len(term.MatchExpressions)+len(term.MatchFields) == 0 {
		return false
	}
	has := func(of labels.Set) func(corev1.NodeSelectorRequirement) bool {
		return func(r corev1.NodeSelectorRequirement) bool {
			required, err := labels.NewRequirement(r.Key, operator(r.Operator), r.Values)
			return err == nil && required.Matches(of)
		}
	}
	all := func(list []corev1.NodeSelectorRequirement, has func(corev1.NodeSelectorRequirement) bool) bool {
		return !slices.ContainsFunc(list, func(r corev1.NodeSelectorRequirement) bool { return !has(r) })
	}
	return all(term.MatchExpressions, has(node.Labels)) && all(term.MatchFields, has(labels.Set{"metadata.name": node.Name}))
}

func operator(op corev1.NodeSelectorOperator) selection.Operator {
	return map[corev1.NodeSelectorOperator]selection.Operator{
		corev1.NodeSelectorOpIn: selection.In, corev1.NodeSelectorOpNotIn: selection.NotIn, corev1.NodeSelectorOpExists: selection.Exists,
		corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist, corev1.NodeSelectorOpGt: selection.GreaterThan, corev1.NodeSelectorOpLt: selection.LessThan,
	}[op]
}

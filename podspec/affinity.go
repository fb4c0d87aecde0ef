package podspec

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	required  = "requiredDuringSchedulingIgnoredDuringExecution"
	preferred = "preferredDuringSchedulingIgnoredDuringExecution"
)

func (e *problems) affinity(p path, a *corev1.Affinity) {
	if n := a.NodeAffinity; n != nil {
		e.nodeAffinity(p.Child("nodeAffinity"), n)
	}
	if near := a.PodAffinity; near != nil {
		e.podTerms(p.Child("podAffinity"), near.RequiredDuringSchedulingIgnoredDuringExecution, near.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if far := a.PodAntiAffinity; far != nil {
		e.podTerms(p.Child("podAntiAffinity"), far.RequiredDuringSchedulingIgnoredDuringExecution, far.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

func (e *problems) nodeAffinity(p path, n *corev1.NodeAffinity) {
	if selector := n.RequiredDuringSchedulingIgnoredDuringExecution; selector != nil {
		at := p.Child(required, "nodeSelectorTerms")
		if len(selector.NodeSelectorTerms) == 0 {
			e.required(at, "give at least one term")
		}
		for i := range selector.NodeSelectorTerms {
			e.nodeTerm(at.Index(i), &selector.NodeSelectorTerms[i], true)
		}
	}
	for i := range n.PreferredDuringSchedulingIgnoredDuringExecution {
		at, term := p.Child(preferred).Index(i), &n.PreferredDuringSchedulingIgnoredDuringExecution[i]
		e.weight(at.Child("weight"), term.Weight)
		e.nodeTerm(at.Child("preference"), &term.Preference, false)
	}
}

// nodeTerm checks a term. Values that no label can have are let pass in what is only preferred.
func (e *problems) nodeTerm(p path, term *corev1.NodeSelectorTerm, values bool) {
	for i := range term.MatchExpressions {
		at, r := p.Child("matchExpressions").Index(i), &term.MatchExpressions[i]
		e.nodeLabel(at, r)
		for j, value := range r.Values {
			if values {
				e.says(at.Child("values").Index(j), value, validation.IsValidLabelValue(value))
			}
		}
	}
	for i := range term.MatchFields {
		e.nodeField(p.Child("matchFields").Index(i), &term.MatchFields[i])
	}
}

func (e *problems) nodeLabel(p path, r *corev1.NodeSelectorRequirement) {
	switch r.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(r.Values) == 0 {
			e.required(p.Child("values"), "give at least one value")
		}
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if len(r.Values) > 0 {
			e.forbidden(p.Child("values"), "must be left out when the operator is Exists or DoesNotExist")
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if len(r.Values) != 1 {
			e.required(p.Child("values"), "give one value when the operator is Gt or Lt")
		}
	default:
		oneOf(e, p.Child("operator"), r.Operator, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists,
			corev1.NodeSelectorOpDoesNotExist, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt)
	}
	e.labelKey(p.Child("key"), r.Key)
}

// nodeField checks a requirement of a field of the node: its name is the only one there is.
func (e *problems) nodeField(p path, r *corev1.NodeSelectorRequirement) {
	oneOf(e, p.Child("operator"), r.Operator, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn)
	if in := r.Operator == corev1.NodeSelectorOpIn || r.Operator == corev1.NodeSelectorOpNotIn; in && len(r.Values) != 1 {
		e.required(p.Child("values"), "give one value")
	}
	if r.Key != metav1.ObjectNameField {
		e.invalid(p.Child("key"), r.Key, "must be "+metav1.ObjectNameField)
		return
	}
	for i, value := range r.Values {
		e.subdomain(p.Child("values").Index(i), value)
	}
}

func (e *problems) podTerms(p path, terms []corev1.PodAffinityTerm, weighted []corev1.WeightedPodAffinityTerm) {
	for i := range terms {
		e.podTerm(p.Child(required).Index(i), &terms[i])
	}
	for i := range weighted {
		at := p.Child(preferred).Index(i)
		e.weight(at.Child("weight"), weighted[i].Weight)
		e.podTerm(at.Child("podAffinityTerm"), &weighted[i].PodAffinityTerm)
	}
}

func (e *problems) podTerm(p path, term *corev1.PodAffinityTerm) {
	e.selector(p.Child("labelSelector"), term.LabelSelector)
	e.selector(p.Child("namespaceSelector"), term.NamespaceSelector)
	for i, name := range term.Namespaces {
		e.says(p.Child("namespaces").Index(i), name, apivalidation.ValidateNamespaceName(name, false))
	}
	e.matchLabelKeys(p, term.MatchLabelKeys, term.MismatchLabelKeys, term.LabelSelector)
	if e.given(p.Child("topologyKey"), term.TopologyKey, "give the label that tells places apart, such as \"kubernetes.io/hostname\"") {
		e.labelKey(p.Child("topologyKey"), term.TopologyKey)
	}
}

package podspec

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
)

// scheduling checks where the pod wants to be, and before which others.
func (c *checker) scheduling(p path) {
	s := c.spec
	c.labels(p.Child("nodeSelector"), s.NodeSelector)
	c.tolerations(p.Child("tolerations"), s.Tolerations)
	if s.PriorityClassName != "" {
		c.subdomain(p.Child("priorityClassName"), s.PriorityClassName)
	}
	maybeOneOf(&c.problems, p.Child("preemptionPolicy"), s.PreemptionPolicy, corev1.PreemptLowerPriority, corev1.PreemptNever)
	seen := map[string]bool{}
	for i, gate := range s.SchedulingGates {
		at := p.Child("schedulingGates").Index(i).Child("name")
		c.says(at, gate.Name, validation.IsQualifiedName(gate.Name))
		if seen[gate.Name] {
			c.duplicate(at, gate.Name)
		}
		seen[gate.Name] = true
	}
	if s.NodeName != "" && len(s.SchedulingGates) > 0 {
		c.forbidden(p.Child("nodeName"), "cannot be set while there are schedulingGates")
	}
	c.schedulingGroup(p.Child("schedulingGroup"))
	if s.Affinity != nil {
		c.affinity(p.Child("affinity"), s.Affinity)
	}
	c.spread(p.Child("topologySpreadConstraints"), s.TopologySpreadConstraints)
}

func (c *checker) schedulingGroup(p path) {
	group := c.spec.SchedulingGroup
	if group == nil {
		return
	}
	if group.PodGroupName == nil {
		c.required(p.Child("podGroupName"), "say which group")
	} else {
		c.subdomain(p.Child("podGroupName"), *group.PodGroupName)
	}
	if len(c.spec.EvictionResponders) > 0 {
		c.forbidden(p, "cannot be set with evictionResponders")
	}
}

// labels checks labels, and what selects by them.
func (e *problems) labels(p path, labels map[string]string) {
	e.all(metavalidation.ValidateLabels(labels, p))
}

func (e *problems) labelKey(p path, key string) { e.all(metavalidation.ValidateLabelName(key, p)) }

func (e *problems) selector(p path, selector *metav1.LabelSelector) {
	e.all(metavalidation.ValidateLabelSelector(selector, metavalidation.LabelSelectorValidationOptions{}, p))
}

func (e *problems) tolerations(p path, tolerations []corev1.Toleration) {
	for i, t := range tolerations {
		at := p.Index(i)
		if t.Key != "" {
			e.labelKey(at.Child("key"), t.Key)
		} else if t.Operator != corev1.TolerationOpExists {
			e.invalid(at.Child("operator"), t.Operator, "must be Exists when there is no key")
		}
		switch t.Operator {
		case corev1.TolerationOpEqual, "":
			e.says(at.Child("value"), t.Value, validation.IsValidLabelValue(t.Value))
		case corev1.TolerationOpExists:
			if t.Value != "" {
				e.invalid(at.Child("value"), t.Value, "must be left out when the operator is Exists")
			}
		default:
			oneOf(e, at.Child("operator"), t.Operator, corev1.TolerationOpEqual, corev1.TolerationOpExists)
		}
		if t.Effect != "" {
			oneOf(e, at.Child("effect"), t.Effect, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)
		}
		if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
			e.invalid(at.Child("effect"), t.Effect, "must be NoExecute when there are tolerationSeconds")
		}
	}
}

func (e *problems) spread(p path, constraints []corev1.TopologySpreadConstraint) {
	for i, s := range constraints {
		at := p.Index(i)
		if s.MaxSkew <= 0 {
			e.invalid(at.Child("maxSkew"), s.MaxSkew, "must be 1 or more")
		}
		e.given(at.Child("topologyKey"), s.TopologyKey, "give the label that tells places apart, such as \"kubernetes.io/hostname\"")
		oneOf(e, at.Child("whenUnsatisfiable"), s.WhenUnsatisfiable, corev1.DoNotSchedule, corev1.ScheduleAnyway)
		for _, other := range constraints[i+1:] {
			if other.TopologyKey == s.TopologyKey && other.WhenUnsatisfiable == s.WhenUnsatisfiable {
				e.duplicate(at.Child("topologyKey"), s.TopologyKey)
				break
			}
		}
		if s.MinDomains != nil {
			if *s.MinDomains <= 0 {
				e.invalid(at.Child("minDomains"), *s.MinDomains, "must be 1 or more")
			}
			if s.WhenUnsatisfiable != corev1.DoNotSchedule {
				e.invalid(at.Child("minDomains"), *s.MinDomains, "needs whenUnsatisfiable to be DoNotSchedule")
			}
		}
		maybeOneOf(e, at.Child("nodeAffinityPolicy"), s.NodeAffinityPolicy, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore)
		maybeOneOf(e, at.Child("nodeTaintsPolicy"), s.NodeTaintsPolicy, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore)
		e.selector(at.Child("labelSelector"), s.LabelSelector)
		e.matchLabelKeys(at, s.MatchLabelKeys, nil, s.LabelSelector)
	}
}

// matchLabelKeys checks the keys whose values are the pod's own. They become part of the selector, which must not have them already.
func (e *problems) matchLabelKeys(p path, match, mismatch []string, selector *metav1.LabelSelector) {
	for _, keys := range []struct {
		field string
		keys  []string
	}{{"matchLabelKeys", match}, {"mismatchLabelKeys", mismatch}} {
		at := p.Child(keys.field)
		if len(keys.keys) > 0 && selector == nil {
			e.forbidden(at, "needs a labelSelector")
			continue
		}
		for i, key := range keys.keys {
			e.labelKey(at.Index(i), key)
		}
	}
	at := p.Child("matchLabelKeys")
	for i, key := range match {
		if slices.Contains(mismatch, key) {
			e.invalid(at.Index(i), key, "must not be among mismatchLabelKeys too")
		}
		if selectsTwice(selector, key) {
			e.invalid(at.Index(i), key, "must not be in the labelSelector too")
		}
	}
}

// selectsTwice says whether a selector has a key by itself, for an API server has already added the one from matchLabelKeys when it looks.
func selectsTwice(selector *metav1.LabelSelector, key string) bool {
	if selector == nil {
		return false
	}
	_, seen := selector.MatchLabels[key]
	for _, expression := range selector.MatchExpressions {
		if expression.Key == key {
			if seen {
				return true
			}
			seen = true
		}
	}
	return false
}

func (e *problems) weight(p path, weight int32) {
	if weight < 1 || weight > 100 {
		e.invalid(p, weight, fmt.Sprintf("must be between %d and %d", 1, 100))
	}
}

package podspec

import (
	"encoding/json"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podDeletionCost orders the pods of a ReplicaSet.
const podDeletionCost = "controller.kubernetes.io/pod-deletion-cost"

// object checks the metadata of any namespaced object.
func (e *problems) object(p path, meta *metav1.ObjectMeta) {
	e.all(apivalidation.ValidateObjectMeta(meta, true, apivalidation.NameIsDNSSubdomain, p))
	for i, name := range meta.Finalizers {
		switch name {
		case string(corev1.FinalizerKubernetes), metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents:
			continue
		}
		if !strings.Contains(name, "/") {
			e.invalid(p.Child("finalizers").Index(i), name, "must be fully qualified, such as \"example.com/name\"")
		}
	}
}

func (c *checker) metadata(p path) {
	c.object(p, &c.pod.ObjectMeta)
	p = p.Child("annotations")
	annotations := c.pod.Annotations
	if value, ok := annotations[corev1.MirrorPodAnnotationKey]; ok && c.spec.NodeName == "" {
		c.invalid(p.Key(corev1.MirrorPodAnnotationKey), value, "needs spec.nodeName")
	}
	if cost, ok := annotations[podDeletionCost]; ok && !isDeletionCost(cost) {
		c.invalid(p.Key(podDeletionCost), cost, "must be an integer of 32 bits")
	}
	if text := annotations[corev1.TolerationsAnnotationKey]; text != "" {
		var tolerations []corev1.Toleration
		at := p.Key(corev1.TolerationsAnnotationKey)
		if err := json.Unmarshal([]byte(text), &tolerations); err != nil {
			c.invalid(at, text, err.Error())
		}
		c.tolerations(at, tolerations)
	}
	c.seccompAnnotations(p)
	c.appArmorAnnotations(p)
}

// isDeletionCost allows of a sign only a minus, and no leading zeros.
func isDeletionCost(s string) bool {
	n, err := strconv.ParseInt(s, 10, 32)
	return err == nil && (s[0] == '-' || s == "0" || n > 0 && s[0] != '+' && s[0] != '0')
}

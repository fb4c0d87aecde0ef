package apiserver

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/references"
)

// mirrorStep is what has to be done next about a static pod's mirror.
type mirrorStep int

const (
	mirrorKeep   mirrorStep = iota // nothing but to show the status
	mirrorCreate                   // there is none
	mirrorRemove                   // what is there is of another pod, or going
	mirrorLeave                    // there is nothing to show
)

// nextMirror decides about the mirror by a static pod's name; either may be nil. wanted says that the static pod is: one that is ending is shown as long as its
// mirror is there, and gets no new one.
func nextMirror(static *corev1.Pod, wanted bool, mirror *corev1.Pod) mirrorStep {
	switch {
	case mirror == nil && wanted:
		return mirrorCreate
	case mirror == nil:
		return mirrorLeave
	case static == nil:
		return mirrorRemove
	case mirror.DeletionTimestamp == nil && mirror.Annotations[AnnotationMirror] == static.Annotations[podmill.AnnotationConfigHash]:
		return mirrorKeep
	case wanted:
		return mirrorRemove
	}
	return mirrorLeave
}

// mirrorOf returns what shows a static pod in the API: the same pod by another UID, owned by its node.
func mirrorOf(static *corev1.Pod, owner *corev1.Node) *corev1.Pod {
	mirror := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: static.Namespace, Name: static.Name, Labels: static.Labels, Annotations: map[string]string{},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: owner.Name, UID: owner.UID, Controller: new(true)}},
		},
		Spec: *static.Spec.DeepCopy(),
	}
	for key, value := range static.Annotations {
		mirror.Annotations[key] = value
	}
	mirror.Annotations[AnnotationMirror] = static.Annotations[podmill.AnnotationConfigHash]
	mirror.Spec.NodeName = owner.Name
	return mirror
}

// ValidateStatic says what of a static pod's spec keeps it from being shown: objects of the cluster, which it must not get by its node's rights
// (CVE-2025-4563), and volumes of CSI drivers, which are asked for such objects.
func ValidateStatic(pod *corev1.Pod) field.ErrorList {
	var errs field.ErrorList
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].CSI != nil {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "volumes").Index(i).Child("csi"),
				"a static pod of a cluster's node has no CSI volumes; remove it, or create the pod in the API"))
		}
	}
	for _, ref := range references.Of(pod) {
		errs = append(errs, field.Forbidden(field.NewPath("spec"), fmt.Sprintf(
			"refers to %s %s: a static pod of a cluster's node has no objects of the cluster; remove it, or create the pod in the API", ref.Kind, ref.Name)))
	}
	return errs
}

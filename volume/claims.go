package volume

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/podmill/podmill"
)

// bound returns a claim and what it is bound to. Every error is one that time may heal, as in the kubelet.
func bound(ctx context.Context, claims podmill.Claims, pod *corev1.Pod, w *wanted) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume, error) {
	claim, err := claims.Claim(ctx, pod.Namespace, w.claim)
	if err != nil {
		return nil, nil, unavailable("persistentvolumeclaim", w.claim, err)
	}
	switch {
	case w.Ephemeral != nil && !metav1.IsControlledBy(claim, pod):
		return nil, nil, fmt.Errorf("PVC %s/%s was not created for pod %s/%s (pod is not owner)", claim.Namespace, claim.Name, pod.Namespace, pod.Name)
	case claim.DeletionTimestamp != nil:
		return nil, nil, fmt.Errorf("persistentvolumeclaim %q: PVC is being deleted", w.claim)
	case claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName == "":
		return nil, nil, fmt.Errorf("persistentvolumeclaim %q: PVC is not bound", w.claim)
	}
	pv, err := claims.PersistentVolume(ctx, claim.Spec.VolumeName)
	if err != nil {
		return nil, nil, unavailable("persistentvolume", claim.Spec.VolumeName, err)
	}
	if ref := pv.Spec.ClaimRef; ref == nil || ref.UID != claim.UID || ref.Namespace != claim.Namespace || ref.Name != claim.Name {
		return nil, nil, fmt.Errorf("persistentvolume %q is not bound to persistentvolumeclaim %q: its claimRef is another's", pv.Name, w.claim)
	}
	return claim, pv, usable(pv, w)
}

// usable reports why a container cannot have a volume in the way that it wants it.
func usable(pv *corev1.PersistentVolume, w *wanted) error {
	switch block := isBlock(pv); {
	case block && w.used.mounted:
		return fmt.Errorf("volume %s has volumeMode Block, but is specified in volumeMounts", w.Name)
	case !block && w.used.device:
		return fmt.Errorf("volume %s has volumeMode Filesystem, but is specified in volumeDevices", w.Name)
	}
	return nil
}

func isBlock(pv *corev1.PersistentVolume) bool {
	return pv.Spec.VolumeMode != nil && *pv.Spec.VolumeMode == corev1.PersistentVolumeBlock
}

// errElsewhere says that a volume is not for this node.
var errElsewhere = errors.New("no matching NodeSelectorTerms: the volume is not for this node")

// matchesNode returns an error unless a volume may be used on a node with these labels.
func matchesNode(pv *corev1.PersistentVolume, node labels.Set) error {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return nil
	}
	for i := range pv.Spec.NodeAffinity.Required.NodeSelectorTerms {
		if matchesTerm(&pv.Spec.NodeAffinity.Required.NodeSelectorTerms[i], node) {
			return nil
		}
	}
	return fmt.Errorf("node affinity of persistentvolume %q: %w", pv.Name, errElsewhere)
}

// matchesTerm reports whether a node has all that a term asks for. One that asks for nothing matches no node, nor does one that cannot be read, or that asks for
// fields, of which a node's labels do not tell.
func matchesTerm(term *corev1.NodeSelectorTerm, node labels.Set) bool {
	if len(term.MatchExpressions) == 0 || len(term.MatchFields) > 0 {
		return false
	}
	operators := map[corev1.NodeSelectorOperator]selection.Operator{
		corev1.NodeSelectorOpIn: selection.In, corev1.NodeSelectorOpNotIn: selection.NotIn, corev1.NodeSelectorOpExists: selection.Exists,
		corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist, corev1.NodeSelectorOpGt: selection.GreaterThan, corev1.NodeSelectorOpLt: selection.LessThan,
	}
	for _, e := range term.MatchExpressions {
		required, err := labels.NewRequirement(e.Key, operators[e.Operator], e.Values)
		if err != nil || !required.Matches(node) {
			return false
		}
	}
	return true
}

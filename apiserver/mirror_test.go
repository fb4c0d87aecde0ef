package apiserver

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
)

func TestNextMirror(t *testing.T) {
	static := podmilltest.Pod("kube-system/etcd-n", podmilltest.Annotation(podmill.AnnotationConfigHash, "h1"))
	mirror := func(hash string, opts ...podmilltest.PodOption) *corev1.Pod {
		return podmilltest.Pod("kube-system/etcd-n", append(opts, podmilltest.Annotation(AnnotationMirror, hash))...)
	}
	for name, tc := range map[string]struct {
		static *corev1.Pod
		wanted bool
		mirror *corev1.Pod
		want   mirrorStep
	}{
		"a new static pod":                            {static, true, nil, mirrorCreate},
		"it is shown":                                 {static, true, mirror("h1"), mirrorKeep},
		"it has changed":                              {static, true, mirror("h0"), mirrorRemove},
		"somebody deletes the mirror":                 {static, true, mirror("h1", podmilltest.Deleted(0)), mirrorRemove},
		"it ends, and is shown until then":            {static, false, mirror("h1"), mirrorKeep},
		"it ends, and somebody deleted the mirror":    {static, false, nil, mirrorLeave},
		"it ends, and another one is shown":           {static, false, mirror("h2"), mirrorLeave},
		"a mirror of nothing":                         {nil, false, mirror("h1"), mirrorRemove},
		"nothing":                                     {nil, false, nil, mirrorLeave},
		"it ends while somebody deletes the mirror":   {static, false, mirror("h1", podmilltest.Deleted(0)), mirrorLeave},
		"it is wanted, and another one's mirror goes": {static, true, mirror("h0", podmilltest.Deleted(0)), mirrorRemove},
	} {
		t.Run(name, func(t *testing.T) {
			if got := nextMirror(tc.static, tc.wanted, tc.mirror); got != tc.want {
				t.Errorf("step %v, want %v", got, tc.want)
			}
		})
	}
}

// A mirror is what NodeRestriction lets a node create: bound to the node, owned by it, with the hash of what it shows.
func TestMirrorOf(t *testing.T) {
	static := podmilltest.Pod("kube-system/etcd-n", podmilltest.Container("c", "i"), podmilltest.Label("a", "b"), podmilltest.Annotation(podmill.AnnotationConfigHash, "h1"))
	before := static.DeepCopy()
	mirror := mirrorOf(static, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "node-uid"}})
	if owner := mirror.OwnerReferences[0]; owner.Kind != "Node" || owner.Name != "n" || owner.UID != "node-uid" || owner.Controller == nil || !*owner.Controller || owner.BlockOwnerDeletion != nil {
		t.Errorf("owner %+v", owner)
	}
	if mirror.UID != "" || mirror.Spec.NodeName != "n" || mirror.Annotations[AnnotationMirror] != "h1" || mirror.Labels["a"] != "b" {
		t.Errorf("mirror %+v", mirror)
	}
	if static.Annotations[AnnotationMirror] != "" || static.Spec.NodeName != before.Spec.NodeName {
		t.Error("the static pod was changed")
	}
}

// The objects of a cluster are not for static pods, whatever their node may read (CVE-2025-4563).
func TestStaticPodsHaveNoObjectsOfTheCluster(t *testing.T) {
	pod := podmilltest.Pod("a/b", podmilltest.Container("c", "i"))
	if errs := ValidateStatic(pod); len(errs) > 0 {
		t.Errorf("refused: %v", errs)
	}
	pod.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}}}
	if errs := ValidateStatic(pod); len(errs) != 1 {
		t.Errorf("errors %v, want one about Secret s", errs)
	}
	podmilltest.Volume("v", corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d"}})(pod)
	if errs := ValidateStatic(pod); len(errs) != 2 || errs[0].Field != "spec.volumes[0].csi" {
		t.Errorf("errors %v, want one about the CSI volume too", errs)
	}
}

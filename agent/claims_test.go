package agent_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podmill/podmill/admission"
	"github.com/podmill/podmill/agent"
	. "github.com/podmill/podmill/podmilltest"
)

// A PersistentVolume that is for one node is had by pods there, and by those of no other: the node that admits pods says what it is called.
func TestAPersistentVolumeIsOfItsNode(t *testing.T) {
	for name, want := range map[string]corev1.PodPhase{"here": corev1.PodRunning, "there": corev1.PodPending} {
		inWorld(t, func(w *world) {
			objects := NewObjects()
			objects.Bind(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data", UID: "claim"}}, volumeOf("here", t.TempDir()))
			w.opts = []agent.Option{agent.WithObjects(objects), agent.WithAdmission(func() admission.Node {
				return admission.Node{Name: name, OS: "linux", Labels: map[string]string{corev1.LabelHostname: name}}
			})}
			claim := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}
			pod := Pod("web", static, Volume("data", claim), Container("web", "busybox:1", VolumeMount("data", "/data")))
			w.start()
			w.file.Replace(pod)
			w.pass(time.Minute)
			w.wantPhase(pod, want)
		})
	}
}

// volumeOf returns a directory of a node's as a PersistentVolume.
func volumeOf(node, dir string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir}},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
		}}}},
	}}
}

package volume

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/podmill/podmill/internal/references"
	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/volume/internal/canary"
)

func claimSource(name string) corev1.VolumeSource {
	return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
}

func claim(name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "uid-of-claim"}}
}

func persistent(name string, source corev1.PersistentVolumeSource) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: source}}
}

func persistentHostPath(name, path string) *corev1.PersistentVolume {
	return persistent(name, corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}})
}

// claimRig is a rig with claims.
func claimRig(t testing.TB, opts ...Option) *rig {
	objects := podmilltest.NewObjects()
	r := newRig(t, append(opts, WithClaims(objects))...)
	r.objects = objects
	r.restart()
	return r
}

func TestClaimOfAHostPath(t *testing.T) {
	r := claimRig(t)
	outside := canary.Tree(t)
	r.objects.Bind(claim("c"), persistentHostPath("pv", outside))
	pod := podOf(claimSource("c"))
	pod.Spec.Volumes[0].PersistentVolumeClaim.ReadOnly = true
	volumes, err := r.MountVolumes(t.Context(), pod)
	must(t, err)
	if v := volumes["v"]; v.HostPath != outside || !v.ReadOnly {
		t.Errorf("%+v, want %s, read-only", v, outside)
	}
	r.unmount(pod)
}

// A claim that is made for the pod is waited for, and must be the pod's own.
func TestEphemeralClaim(t *testing.T) {
	r := claimRig(t)
	pod := podOf(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}})
	theirs := claim("a-v")
	theirs.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(podmilltest.Pod("other"), corev1.SchemeGroupVersion.WithKind("Pod"))}
	r.objects.Bind(theirs, persistentHostPath("pv", t.TempDir()))
	r.notReady(pod, "PVC default/a-v was not created for pod default/a (pod is not owner)")

	ours := claim("a-v")
	ours.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	mounted := make(chan error, 1)
	go func() {
		_, err := r.MountVolumes(ctx, pod)
		mounted <- err
	}()
	r.objects.Bind(ours, persistentHostPath("pv", t.TempDir()))
	r.Changed(references.OfVolume(pod, &pod.Spec.Volumes[0])[0])
	must(t, <-mounted)
	r.unmount(pod)
}

// notReady checks that a pod's volume cannot be had now, for a reason that may pass.
func (r *rig) notReady(pod *corev1.Pod, why string) {
	r.t.Helper()
	ctx, cancel := contextOf(r.t)
	defer cancel()
	if _, err := r.MountVolumes(ctx, pod); err == nil || !strings.Contains(err.Error(), why) || errors.Is(err, errors.ErrUnsupported) {
		r.t.Errorf("error %v, want one that says %s", err, why)
	}
}

func TestClaimsThatCannotBeHad(t *testing.T) {
	now := metav1.Now()
	block := corev1.PersistentVolumeBlock
	for why, change := range map[string]func(r *rig, c *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume){
		`persistentvolumeclaim "c" not found`: func(r *rig, c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			r.objects.Delete(references.OfVolume(podOf(claimSource("c")), &corev1.Volume{VolumeSource: claimSource("c")})[0])
		},
		`persistentvolumeclaim "c": PVC is being deleted`: func(_ *rig, c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) { c.DeletionTimestamp = &now },
		`persistentvolumeclaim "c": PVC is not bound`: func(_ *rig, c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			c.Status.Phase = corev1.ClaimPending
		},
		`persistentvolume "gone" not found`: func(_ *rig, c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) { c.Spec.VolumeName = "gone" },
		`persistentvolume "pv" is not bound to persistentvolumeclaim "c": its claimRef is another's`: func(_ *rig, _ *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) {
			pv.Spec.ClaimRef.UID = "another"
		},
		"volume v has volumeMode Block, but is specified in volumeMounts": func(_ *rig, _ *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) {
			pv.Spec.VolumeMode = &block
		},
		`node affinity of persistentvolume "pv": no matching NodeSelectorTerms`: func(_ *rig, _ *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) {
			pv.Spec.NodeAffinity = affinity("kubernetes.io/hostname", corev1.NodeSelectorOpIn, "other")
		},
	} {
		t.Run(why, func(t *testing.T) {
			r := claimRig(t, WithNodeLabels(func() map[string]string { return map[string]string{"kubernetes.io/hostname": "this"} }))
			c, pv := claim("c"), persistentHostPath("pv", t.TempDir())
			r.objects.Bind(c, pv)
			change(r, c, pv)
			r.notReady(podOf(claimSource("c")), why)
		})
	}
}

// What no time will heal is said at once.
func TestClaimsThatAreRefused(t *testing.T) {
	r := newRig(t)
	if why := r.refused(podOf(claimSource("c"))); !strings.Contains(why, "persistentVolumeClaim volumes are not supported") {
		t.Error(why)
	}
	r = claimRig(t)
	r.objects.Bind(claim("c"), persistent("pv", corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{}}))
	if why := r.refused(podOf(claimSource("c"))); !strings.Contains(why, "nfs persistent volumes are not supported") {
		t.Error(why)
	}
	r.objects.Bind(claim("c"), persistentHostPath("../pv", "/"))
	if why := r.refused(podOf(claimSource("c"))); !strings.Contains(why, "no name for a directory") {
		t.Error(why)
	}
}

func affinity(key string, operator corev1.NodeSelectorOperator, values ...string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: operator, Values: values}},
	}}}}
}

func TestMatchesNode(t *testing.T) {
	node := labels.Set{"zone": "a", "size": "5"}
	either := affinity("zone", corev1.NodeSelectorOpIn, "b")
	either.Required.NodeSelectorTerms = append(either.Required.NodeSelectorTerms, affinity("size", corev1.NodeSelectorOpLt, "6").Required.NodeSelectorTerms...)
	both := affinity("zone", corev1.NodeSelectorOpIn, "a")
	both.Required.NodeSelectorTerms[0].MatchExpressions = append(both.Required.NodeSelectorTerms[0].MatchExpressions,
		corev1.NodeSelectorRequirement{Key: "size", Operator: corev1.NodeSelectorOpGt, Values: []string{"5"}})
	fields := affinity("zone", corev1.NodeSelectorOpIn, "a")
	fields.Required.NodeSelectorTerms[0].MatchFields = []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n"}}}
	for _, tt := range []struct {
		affinity *corev1.VolumeNodeAffinity
		want     bool
	}{
		{nil, true}, {&corev1.VolumeNodeAffinity{}, true},
		{&corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{}}, false},
		{&corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: make([]corev1.NodeSelectorTerm, 1)}}, false},
		{affinity("zone", corev1.NodeSelectorOpIn, "b", "a"), true}, {affinity("zone", corev1.NodeSelectorOpIn, "b"), false},
		{affinity("zone", corev1.NodeSelectorOpNotIn, "b"), true}, {affinity("zone", corev1.NodeSelectorOpNotIn, "a"), false},
		{affinity("zone", corev1.NodeSelectorOpExists), true}, {affinity("other", corev1.NodeSelectorOpExists), false},
		{affinity("other", corev1.NodeSelectorOpDoesNotExist), true}, {affinity("zone", "Sounds"), false},
		{affinity("size", corev1.NodeSelectorOpGt, "4"), true}, {affinity("size", corev1.NodeSelectorOpLt, "x"), false},
		{either, true}, {both, false}, {fields, false},
	} {
		pv := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{NodeAffinity: tt.affinity}}
		if err := matchesNode(pv, node); (err == nil) != tt.want || err != nil && !errors.Is(err, errElsewhere) {
			t.Errorf("%v: %v, want %v", tt.affinity, err, tt.want)
		}
	}
}

package podspecdiff

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"sigs.k8s.io/yaml"

	"github.com/podmill/podmill/podspec"
)

// read returns the valid pods by the names of their files.
func read(t *testing.T) map[string]*corev1.Pod {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no pods: %v", err)
	}
	pods := map[string]*corev1.Pod{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pod := &corev1.Pod{}
		if err := yaml.UnmarshalStrict(data, pod); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		pods[filepath.Base(file)] = pod
	}
	return pods
}

// sameDefaults fills in a pod's defaults, and complains if both do not do the same.
func sameDefaults(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	want, got := realDefault(t, pod), pod.DeepCopy()
	podspec.Default(got)
	want.Status, got.Status = corev1.PodStatus{}, corev1.PodStatus{}
	// Nor are ephemeral containers defaulted that cannot be.
	want.Spec.EphemeralContainers, got.Spec.EphemeralContainers = pod.Spec.EphemeralContainers, pod.Spec.EphemeralContainers
	if !equality.Semantic.DeepEqual(want, got) {
		t.Errorf("defaults differ (-kubernetes +podspec):\n%s", cmp.Diff(text(t, want), text(t, got)))
	}
	again := got.DeepCopy()
	podspec.Default(again)
	if !equality.Semantic.DeepEqual(again, got) {
		t.Errorf("defaults change when they are made again:\n%s", cmp.Diff(text(t, got), text(t, again)))
	}
	return got
}

// check puts one pod through both and complains where they differ.
func (f *form) check(t *testing.T, pod *corev1.Pod) (valid bool) {
	t.Helper()
	return f.checkBare(t, sameDefaults(t, pod))
}

// checkBare is check without defaults.
func (f *form) checkBare(t *testing.T, pod *corev1.Pod) (valid bool) {
	t.Helper()
	theirs, ours := ofInvalidVolumes(realValidate(t, pod)), ofInvalidVolumes(podspec.Validate(pod))
	want, got := f.paths(theirs), f.paths(ours)
	if slices.Equal(want, got) {
		return len(theirs) == 0
	}
	for _, e := range theirs {
		if !slices.Contains(got, f.of(e)) {
			t.Errorf("only kubernetes says: %v", e)
		}
	}
	for _, e := range ours {
		if !slices.Contains(want, f.of(e)) {
			t.Errorf("only podspec says: %v", e)
		}
	}
	t.Log(text(t, pod))
	return len(theirs) == 0
}

func text(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	data, err := yaml.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestValidPods shows that what the files have is defaulted alike and complained of by neither.
func TestValidPods(t *testing.T) {
	for name, pod := range read(t) {
		t.Run(name, func(t *testing.T) {
			if !newForm().check(t, pod) {
				t.Errorf("kubernetes says: %v", realValidate(t, sameDefaults(t, pod)))
			}
		})
	}
}

// TestChangedPods changes a few things, at random, in pods that are valid.
func TestChangedPods(t *testing.T) {
	f, pods := newForm(), read(t)
	for name, pod := range pods {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, uint64(len(name))))
			valid := 0
			const rounds = 1000
			for range rounds {
				changed := pod.DeepCopy()
				change(random, changed, 1+random.IntN(3))
				if f.check(t, changed) {
					valid++
				}
				if t.Failed() {
					return
				}
			}
			if valid == 0 || valid == rounds {
				t.Errorf("%d of %d are valid", valid, rounds)
			}
		})
	}
}

// TestRandomPods makes pods of anything.
func TestRandomPods(t *testing.T) {
	f := newForm()
	random := rand.New(rand.NewPCG(2, 2))
	for range 2000 {
		pod := &corev1.Pod{}
		fill(random, pod)
		f.check(t, pod)
		if t.Failed() {
			return
		}
	}
}

// TestStaticPods shows that what is refused of static pods is what the kubelet refuses, but for ConfigMaps, Secrets and CSI volumes.
func TestStaticPods(t *testing.T) {
	same := func(pod *corev1.Pod) (refused bool) {
		t.Helper()
		podspec.Default(pod)
		theirs, _, err := podutil.HasAPIObjectReference(internal(t, pod))
		ours := podspec.ValidateStatic(pod)
		if theirs = theirs || err != nil; theirs != (len(ours) > 0) {
			t.Errorf("kubernetes refuses: %v (%v), podspec: %v\n%s", theirs, err, ours, text(t, pod))
		}
		return theirs
	}
	for _, pod := range read(t) {
		withoutObjects(pod)
		same(pod)
		volumes := pod.Spec.Volumes
		pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount, pod.Spec.ResourceClaims = "", "", nil
		for _, v := range volumes {
			pod.Spec.Volumes = []corev1.Volume{v}
			same(pod)
			if v.Projected == nil {
				continue
			}
			for _, s := range append(v.Projected.Sources, corev1.VolumeProjection{}) {
				pod.Spec.Volumes[0].Projected = &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{s}}
				same(pod)
			}
		}
	}
	random, refused := rand.New(rand.NewPCG(3, 3)), 0
	const rounds = 2000
	for range rounds {
		pod := &corev1.Pod{}
		fill(random, pod)
		withoutObjects(pod)
		if same(pod) {
			refused++
		}
	}
	if refused == 0 || refused == rounds {
		t.Errorf("%d are refused", refused)
	}
}

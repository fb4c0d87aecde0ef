package podspecdiff

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	v1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/capabilities"
)

// Privileged containers are the administrator's to allow. A node allows them.
func TestMain(m *testing.M) {
	capabilities.Setup(true, 0)
	m.Run()
}

// realDefault fills in what an API server does when a pod is created.
func realDefault(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	pod = pod.DeepCopy()
	v1.SetObjectDefaults_Pod(pod)
	inner := internal(t, pod)
	podutil.DefaultPodLevelResources(inner)
	out := &corev1.Pod{}
	if err := v1.Convert_core_Pod_To_v1_Pod(inner, out, nil); err != nil {
		t.Fatal(err)
	}
	out.TypeMeta = pod.TypeMeta
	return out
}

// realValidate says what an API server does of a pod that is to be created.
func realValidate(t *testing.T, pod *corev1.Pod) field.ErrorList {
	t.Helper()
	inner := internal(t, pod)
	opts := podutil.GetValidationOptionsFromPodSpecAndMeta(&inner.Spec, nil, &inner.ObjectMeta, nil)
	opts.ResourceIsPod = true
	return validation.ValidatePodCreate(inner, opts)
}

func internal(t *testing.T, pod *corev1.Pod) *core.Pod {
	t.Helper()
	inner := &core.Pod{}
	if err := v1.Convert_v1_Pod_To_core_Pod(pod.DeepCopy(), inner, nil); err != nil {
		t.Fatal(err)
	}
	return inner
}

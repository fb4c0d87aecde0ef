package podspec_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podmill/podmill/podspec"
)

func Example() {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name:         "main",
			Image:        "web:1",
			VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
			Ports:        []corev1.ContainerPort{{ContainerPort: 80000}},
		}}},
	}
	podspec.Default(pod)
	fmt.Println(pod.Spec.RestartPolicy, pod.Spec.Containers[0].ImagePullPolicy)
	for _, err := range podspec.Validate(pod) {
		fmt.Println(err)
	}
	// Output:
	// Always IfNotPresent
	// spec.containers[0].ports[0].containerPort: Invalid value: 80000: must be between 1 and 65535, inclusive
	// spec.containers[0].volumeMounts[0].name: Not found: "data": must be one of spec.volumes
}

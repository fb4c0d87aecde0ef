package podmilltest

import (
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPodHasTheDefaultsOfTheAPI(t *testing.T) {
	cpu := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	got := Pod("shop/cart", UID("u"), Label("app", "cart"), Grace(5*time.Second), Restart(corev1.RestartPolicyNever),
		Volume("data", corev1.VolumeSource{}),
		Volume("config", corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}),
		Sidecar("proxy", "registry.test:5000/proxy"),
		Container("web", "web:1", Runs("exit 1"), Env("A", "b"), VolumeMount("data", "/data"), func(c *corev1.Container) {
			c.Resources.Limits = cpu
			c.Ports = []corev1.ContainerPort{{ContainerPort: 80}}
			c.LivenessProbe = &corev1.Probe{PeriodSeconds: 3}
		}),
	)
	policy := corev1.ContainerRestartPolicyAlways
	want := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart", UID: "u", Labels: map[string]string{"app": "cart"}},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, DNSPolicy: corev1.DNSClusterFirst, SchedulerName: "default-scheduler",
			TerminationGracePeriodSeconds: new(int64(5)), EnableServiceLinks: new(true), SecurityContext: &corev1.PodSecurityContext{},
			Volumes: []corev1.Volume{
				{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{DefaultMode: new(int32(0o644))}}},
			},
			InitContainers: []corev1.Container{{
				Name: "proxy", Image: "registry.test:5000/proxy", ImagePullPolicy: corev1.PullAlways, RestartPolicy: &policy,
				TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile,
			}},
			Containers: []corev1.Container{{
				Name: "web", Image: "web:1", ImagePullPolicy: corev1.PullIfNotPresent,
				TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile,
				Command: []string{"sh", "-c", "exit 1"}, Env: []corev1.EnvVar{{Name: "A", Value: "b"}},
				VolumeMounts:  []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
				Resources:     corev1.ResourceRequirements{Limits: cpu, Requests: cpu},
				Ports:         []corev1.ContainerPort{{ContainerPort: 80, Protocol: corev1.ProtocolTCP}},
				LivenessProbe: &corev1.Probe{PeriodSeconds: 3, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3},
			}},
		},
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestUIDComesFromTheName(t *testing.T) {
	a, again, b := Pod("a"), Pod("default/a"), Pod("b")
	if a.UID != again.UID || a.UID == b.UID || len(a.UID) != 36 {
		t.Errorf("UIDs %s, %s and %s", a.UID, again.UID, b.UID)
	}
	edited := Edit(a, Container("c", "i"))
	if edited.UID != a.UID || len(a.Spec.Containers) != 0 || edited.Spec.Containers[0].ImagePullPolicy == "" {
		t.Errorf("Edit made %+v of %+v", edited, a)
	}
}

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podmill/podmill/internal/testenv"
	"github.com/podmill/podmill/podmilltest"
)

// execProbe is a probe by a command, once a second. It has the time that a command may take on a machine that is busy.
func execProbe(failures int32, command ...string) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: command}},
		PeriodSeconds: 1, TimeoutSeconds: 60, FailureThreshold: failures, SuccessThreshold: 1,
	}
}

// A pod with all that a pod may need, a Secret, a ConfigMap, a token, an init container that needs them, and the three probes: it goes through its conditions one after another,
// and the API hears of each.
func TestAPodWithAllThatItNeeds(t *testing.T) {
	c := newCluster(t)
	c.start()
	c.Create("configmaps", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"COLOUR": "green"}}, nil)
	c.Create("secrets", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, Data: map[string][]byte{"key": []byte("one")}}, nil)
	pod := podmilltest.Pod("x/all", podmilltest.Grace(0),
		podmilltest.Volume("key", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "key"}}),
		podmilltest.Volume("work", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}),
		podmilltest.InitContainer("first", busybox, podmilltest.Command("sh", "-c",
			"test $COLOUR = green && cp /key/key /work/first && test -s /var/run/secrets/kubernetes.io/serviceaccount/token"),
			podmilltest.VolumeMount("key", "/key"), podmilltest.VolumeMount("work", "/work")),
		podmilltest.Container("main", busybox, podmilltest.Command("sh", "-c", "rm -f /work/dead; test $(cat /work/first) = one && exec sleep 100000"),
			podmilltest.VolumeMount("key", "/key"), podmilltest.VolumeMount("work", "/work")))
	pod.Spec.InitContainers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}
	main := &pod.Spec.Containers[0]
	main.StartupProbe = execProbe(1000, "test", "-e", "/work/started")
	main.ReadinessProbe = execProbe(1, "test", "-e", "/work/ready")
	main.LivenessProbe = execProbe(1, "test", "!", "-e", "/work/dead")
	c.CreatePod(pod)

	started := func(pod *corev1.Pod) bool {
		s := pod.Status.ContainerStatuses
		return len(s) == 1 && s[0].Started != nil && *s[0].Started
	}
	pod = c.reaches("all", "runs", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning })
	if first := pod.Status.InitContainerStatuses[0].State.Terminated; first == nil || first.ExitCode != 0 || started(pod) || ready(pod) {
		t.Errorf("before its startup probe succeeds it is %+v", pod.Status)
	}
	c.sh(pod, "main", "touch /work/started")
	if pod = c.reaches("all", "has started", started); ready(pod) {
		t.Errorf("before its readiness probe succeeds it is %+v", pod.Status)
	}
	c.sh(pod, "main", "touch /work/ready")
	c.reaches("all", "is ready", ready)
	c.sh(pod, "main", "rm /work/ready")
	c.reaches("all", "is not ready any more", func(pod *corev1.Pod) bool { return !ready(pod) })
	c.sh(pod, "main", "touch /work/ready")
	c.reaches("all", "is ready again", ready)
	c.Patch("secrets", "key", map[string]any{"data": map[string]any{"key": []byte("two")}})
	c.Eventually("the volume has the new secret", func() bool { return c.sh(pod, "main", "cat /key/key") == "two" })
	c.sh(pod, "main", "touch /work/dead")
	pod = c.reaches("all", "was restarted, and is ready", func(pod *corev1.Pod) bool { return pod.Status.ContainerStatuses[0].RestartCount == 1 && ready(pod) })
	if pod.Status.InitContainerStatuses[0].RestartCount != 0 || pod.Status.ContainerStatuses[0].LastTerminationState.Terminated == nil {
		t.Errorf("after its liveness probe has failed it is %+v", pod.Status)
	}
}

// An image that not everybody may have is pulled by the Secret of the pod's service account, and by no other.
func TestAnImageByTheServiceAccountsSecret(t *testing.T) {
	registry := testenv.AuthRegistry(t)
	image := registry.Push(t, fmt.Sprintf("private-account-%d:1", os.Getpid()), 1000)
	c := newCluster(t)
	c.start()
	private := func(name string) *corev1.Pod {
		return podmilltest.Pod("x/"+name, podmilltest.Grace(0), podmilltest.Container("main", image, podmilltest.Command("sleep", "100000")))
	}
	c.CreatePod(private("refused"))
	c.reaches("refused", "is refused its image", func(pod *corev1.Pod) bool {
		s := pod.Status.ContainerStatuses
		return len(s) == 1 && s[0].State.Waiting != nil && slices.Contains([]string{"ErrImagePull", "ImagePullBackOff"}, s[0].State.Waiting.Reason)
	})
	login, err := json.Marshal(map[string]any{"auths": map[string]any{registry.Addr: map[string]string{"username": registry.User, "password": registry.Password}}})
	if err != nil {
		t.Fatal(err)
	}
	c.Create("secrets", &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "login"}, Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: login},
	}, nil)
	c.Patch("serviceaccounts", "default", map[string]any{"imagePullSecrets": []any{map[string]any{"name": "login"}}})
	c.Eventually("the API server's admission knows of it", func() bool {
		pod := private("pulls")
		c.Delete("pods", pod.Name, 0)
		return len(c.CreatePod(pod).Spec.ImagePullSecrets) == 1
	})
	c.reaches("pulls", "is ready", ready)
	c.signal(os.Interrupt) // its output is whole
	if strings.Contains(c.output.String(), registry.Password) {
		t.Error("the password is in the log")
	}
}

// What the flags say of the node is so: its name and address, its labels, how many pods it takes, and by whom they find names.
func TestWhatTheFlagsSay(t *testing.T) {
	c := newCluster(t)
	c.args = append(c.args, "--cluster-dns", "10.96.0.10", "--cluster-domain", "cluster.test", "--node-labels", "example.com/team=a,tier=b", "--max-pods", "1")
	c.start()
	c.CreatePod(sleeper("first"))
	pod := c.reaches("first", "is ready", ready)
	got := c.sh(pod, "main", "cat /etc/resolv.conf")
	search := c.Namespace + ".svc.cluster.test svc.cluster.test cluster.test"
	if !strings.Contains(got, "nameserver 10.96.0.10") || !strings.Contains(got, "search "+search) {
		t.Errorf("resolv.conf is %q", got)
	}
	c.CreatePod(sleeper("second"))
	second := c.reaches("second", "is rejected", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed })
	if second.Status.Reason != "OutOfpods" {
		t.Errorf("the second pod is %+v", second.Status)
	}
	node := c.node()
	if l := node.Labels; l["example.com/team"] != "a" || l["tier"] != "b" || l[corev1.LabelHostname] != c.Node {
		t.Errorf("labels %v", l)
	}
	if pods := node.Status.Capacity.Pods(); pods.Value() != 1 {
		t.Errorf("the node says that it takes %v pods", pods)
	}
	address := corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}
	if !slices.Contains(node.Status.Addresses, address) || pod.Status.HostIP != address.Address {
		t.Errorf("addresses %v, and the pod's host has %s", node.Status.Addresses, pod.Status.HostIP)
	}
}

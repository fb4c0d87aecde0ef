package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podmill/podmill/podmilltest"
)

// The whole way: the node registers and is ready; a pod that is bound to it runs, and says so; deleting it ends it, and the API forgets it.
func TestAPodOfTheAPIRuns(t *testing.T) {
	c := newCluster(t)
	c.start()
	c.Eventually("the node is ready", c.nodeReady)
	c.CreatePod(sleeper("plain"))
	pod := c.reaches("plain", "is ready", ready)
	if pod.Status.Phase != corev1.PodRunning || pod.Status.PodIP == "" || pod.Status.HostIP == "" || pod.Status.StartTime == nil {
		t.Errorf("status %+v", pod.Status)
	}
	if got := c.sh(pod, "main", "hostname"); got != "plain" {
		t.Errorf("the container is called %q", got)
	}
	c.Delete("pods", "plain", 1)
	c.gone("plain")
	if !c.seen(pod.UID).Empty() {
		t.Error("the API has forgotten the pod, and the runtime holds something of it")
	}
}

// A pod has what it refers to: a ConfigMap, a Secret, its service account's token. A Secret that is changed is changed in the volume.
func TestAPodHasItsObjects(t *testing.T) {
	c := newCluster(t)
	c.start()
	c.Create("configmaps", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"COLOUR": "green"}}, nil)
	c.Create("secrets", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, Data: map[string][]byte{"key": []byte("one")}}, nil)
	pod := sleeper("objects", podmilltest.Volume("key", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "key"}}))
	main := &pod.Spec.Containers[0]
	main.VolumeMounts = []corev1.VolumeMount{{Name: "key", MountPath: "/key"}}
	main.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}
	c.CreatePod(pod)
	pod = c.reaches("objects", "is ready", ready)
	if got := c.sh(pod, "main", "echo $COLOUR; cat /key/key"); got != "green\none" {
		t.Errorf("the container has %q", got)
	}
	const account = "/var/run/secrets/kubernetes.io/serviceaccount/"
	if got := c.sh(pod, "main", "cat "+account+"namespace "+account+"token"); !strings.HasPrefix(got, c.Namespace+"ey") || strings.Count(got, ".") != 2 {
		t.Errorf("namespace and token are %.80q", got)
	}
	if got := c.sh(pod, "main", "echo $KUBERNETES_SERVICE_PORT"); got != "443" {
		t.Errorf("KUBERNETES_SERVICE_PORT is %q", got)
	}
	c.Patch("secrets", "key", map[string]any{"data": map[string]any{"key": []byte("two")}})
	c.Eventually("the volume has the new secret", func() bool { return c.sh(pod, "main", "cat /key/key") == "two" })
}

// A static pod is shown in the API by a mirror, with its status. Deleting the mirror does not touch the pod and brings the mirror back; removing the
// manifest ends the pod, and the mirror goes.
func TestAStaticPodIsShown(t *testing.T) {
	c := newCluster(t)
	c.start()
	manifest := filepath.Join(c.manifests, "web.yaml")
	text := "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: " + c.Namespace + "}\nspec:\n  terminationGracePeriodSeconds: 0\n" +
		"  containers: [{name: main, image: \"" + busybox + "\", command: [sleep, \"100000\"]}]\n"
	if err := os.WriteFile(manifest, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	name := "web-" + c.Node
	mirror := c.reaches(name, "is ready", ready)
	own := c.own()
	if len(own) != 1 || own[0].UID == mirror.UID {
		t.Fatalf("%d pods, want one by another UID than the mirror's", len(own))
	}
	before, uid := own[0], own[0].UID
	c.Delete("pods", name, -1)
	again := c.reaches(name, "is back", func(pod *corev1.Pod) bool { return pod.UID != mirror.UID && ready(pod) })
	if now := c.seen(uid); now.Container("main").ID != before.Container("main").ID {
		t.Errorf("the container was touched: %+v, is %+v", before.Container("main"), now.Container("main"))
	}
	if err := os.Remove(manifest); err != nil {
		t.Fatal(err)
	}
	c.gone(name)
	if !c.seen(uid).Empty() {
		t.Errorf("mirror %s is gone, and the runtime holds something of the pod", again.UID)
	}
}

// An agent that is killed and started again finds its pods, touches none, and writes nothing that is written already.
func TestARestartTouchesNothing(t *testing.T) {
	c := newCluster(t)
	c.start()
	for _, name := range []string{"a", "b", "c"} {
		c.CreatePod(sleeper(name))
	}
	before := map[string]*corev1.Pod{}
	for _, name := range []string{"a", "b", "c"} {
		before[name] = c.reaches(name, "is ready", ready)
	}
	c.signal(os.Kill)
	c.start()
	c.CreatePod(sleeper("d")) // when this one runs the others have been looked at
	c.reaches("d", "is ready", ready)
	for name, pod := range before {
		if now := c.Pod(name); now.ResourceVersion != pod.ResourceVersion {
			t.Errorf("pod %s was written again: %+v, is %+v", name, pod.Status, now.Status)
		}
	}
}

// A pod that the node cannot run is Failed with the reason, and never meets the runtime. Deleting it is confirmed.
func TestAPodThatDoesNotFit(t *testing.T) {
	c := newCluster(t)
	c.start()
	pod := sleeper("huge")
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000")}
	c.CreatePod(pod)
	huge := c.reaches("huge", "is rejected", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed })
	if huge.Status.Reason != "OutOfcpu" || !strings.HasPrefix(huge.Status.Message, "Pod was rejected: Node didn't have enough resource: cpu") {
		t.Errorf("status %+v", huge.Status)
	}
	c.CreatePod(sleeper("small"))
	c.reaches("small", "is ready", ready)
	if !c.seen(huge.UID).Empty() {
		t.Error("the runtime has something of the rejected pod")
	}
	events := &corev1.EventList{}
	c.Eventually("people are told", func() bool {
		c.List("events", events)
		return slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.InvolvedObject.UID == huge.UID && e.Reason == "OutOfcpu" })
	})
	c.Delete("pods", "huge", -1)
	c.gone("huge")
}

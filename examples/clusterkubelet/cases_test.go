package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podmill/podmill/podmilltest"
)

// B089: who may read a service account's token, as the API server's own admission has it mounted: the user of a pod all of whose containers have one, else the group of its
// volumes, else everybody.
func TestWhoMayReadAToken(t *testing.T) {
	c := newCluster(t)
	c.start()
	for name, tc := range map[string]struct {
		security *corev1.PodSecurityContext
		want     string // of the token and of the ConfigMap beside it: user, group, mode
	}{
		"user":   {&corev1.PodSecurityContext{RunAsUser: new(int64(1000))}, "1000 0 600\n0 0 644"},
		"group":  {&corev1.PodSecurityContext{FSGroup: new(int64(2000))}, "0 2000 640\n0 2000 644"},
		"nobody": {nil, "0 0 644\n0 0 644"},
	} {
		pod := sleeper("token-" + name)
		pod.Spec.SecurityContext = tc.security
		c.CreatePod(pod)
		const account = "/var/run/secrets/kubernetes.io/serviceaccount/"
		if got := c.sh(c.reaches(pod.Name, "is ready", ready), "main", "stat -L -c '%u %g %a' "+account+"token "+account+"ca.crt"); got != tc.want {
			t.Errorf("%s: user, group and mode of token and certificate are %q, want %q", name, got, tc.want)
		}
	}
}

// B090: a taint that evicts keeps a pod of the API away which does not tolerate it, and no static pod.
func TestATaintOfTheNode(t *testing.T) {
	c := newCluster(t)
	c.args = append(c.args, "--register-with-taints", "k=v:NoExecute,s=v:NoSchedule")
	text := "apiVersion: v1\nkind: Pod\nmetadata: {name: static, namespace: " + c.Namespace + "}\nspec:\n  terminationGracePeriodSeconds: 0\n" +
		"  containers: [{name: main, image: \"" + busybox + "\", command: [sleep, \"100000\"]}]\n"
	if err := os.WriteFile(filepath.Join(c.manifests, "static.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c.start()
	c.Eventually("the node is ready", c.nodeReady)
	c.CreatePod(sleeper("refused"))
	tolerant := sleeper("tolerant")
	tolerant.Spec.Tolerations = []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}
	c.CreatePod(tolerant)
	refused := c.reaches("refused", "is rejected", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed })
	if refused.Status.Reason != "TaintToleration" {
		t.Errorf("it is rejected with %+v", refused.Status)
	}
	c.reaches("tolerant", "is ready", ready)
	c.reaches("static-"+c.Node, "is ready", ready)
}

// B111: containers are told of the Services of their namespace that have an address, unless they do not want to be, and always of the API server; what they say themselves wins.
func TestServicesInTheEnvironment(t *testing.T) {
	c := newCluster(t)
	c.start()
	for _, s := range []struct{ name, ip string }{{"shop", ""}, {"mail", ""}, {"peers", corev1.ClusterIPNone}} {
		c.Create("services", &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: s.name}, Spec: corev1.ServiceSpec{ClusterIP: s.ip, Ports: []corev1.ServicePort{{Port: 80}}},
		}, nil)
	}
	for name, links := range map[string]*bool{"unset": nil, "true": new(true), "false": new(bool)} {
		pod := sleeper("links-" + name)
		pod.Spec.EnableServiceLinks = links
		podmilltest.Env("MAIL_SERVICE_HOST", "mine")(&pod.Spec.Containers[0])
		c.CreatePod(pod)
		got := c.sh(c.reaches(pod.Name, "is ready", ready), "main", "env | grep _SERVICE_HOST | sort | sed 's/=10[.].*//'")
		want := "KUBERNETES_SERVICE_HOST\nMAIL_SERVICE_HOST=mine\nSHOP_SERVICE_HOST"
		if name == "false" {
			want = strings.TrimSuffix(want, "\nSHOP_SERVICE_HOST")
		}
		if got != want {
			t.Errorf("enableServiceLinks %s: %q, want %q", name, got, want)
		}
	}
}

// B023, over a restart: what was rejected, what is over and what runs is as it was, and the next that fits is admitted.
func TestARestartAdmitsAsBefore(t *testing.T) {
	c := newCluster(t)
	c.start()
	asks := func(name, cpu string, opts ...podmilltest.ContainerOption) *corev1.Pod {
		pod := sleeper(name)
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		for _, opt := range opts {
			opt(&pod.Spec.Containers[0])
		}
		return pod
	}
	c.CreatePod(asks("over", "1", podmilltest.Command("true")))
	over := c.reaches("over", "is over", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodSucceeded })
	c.CreatePod(asks("runs", "500m"))
	runs := c.reaches("runs", "is ready", ready)
	c.CreatePod(asks("huge", "1000"))
	huge := c.reaches("huge", "is rejected", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed })
	c.signal(os.Kill)
	c.start()
	c.CreatePod(asks("small", "500m"))
	c.reaches("small", "is ready", ready)
	for _, before := range []*corev1.Pod{over, runs, huge} {
		if now := c.Pod(before.Name); now.ResourceVersion != before.ResourceVersion {
			t.Errorf("pod %s has become %+v, was %+v", now.Name, now.Status, before.Status)
		}
	}
	if !c.seen(huge.UID).Empty() {
		t.Error("the runtime has something of the rejected pod")
	}
}

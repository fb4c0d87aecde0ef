package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/apiserver"
	"github.com/podmill/podmill/examples/internal/machine"
	"github.com/podmill/podmill/internal/testenv/apifault"
	"github.com/podmill/podmill/internal/testenv/memapi"
	"github.com/podmill/podmill/podmilltest"
)

// virtual is a whole clusterkubelet in virtual time, between a runtime and an API server in memory. On the way to the server things can go wrong.
type virtual struct {
	*testing.T
	rt   *podmilltest.Runtime
	use  containers // what the agent is given: rt or a wrapper of it
	api  *memapi.Server
	way  *apifault.Faults
	root string

	stop func()
}

// inVirtualTime tells a story of a node that is started, and has registered.
func inVirtualTime(t *testing.T, story func(v *virtual)) {
	t.Helper()
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		rt := podmilltest.NewRuntime(podmilltest.WithImages(podmilltest.ScriptImage(busybox, "sleep 1000000")))
		defer rt.Close()
		v := &virtual{T: t, rt: rt, use: rt, api: memapi.New("n"), root: root}
		v.way = apifault.New(v.api)
		v.api.Create("services", &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}})
		v.api.Create("configmaps", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "settings"}, Data: map[string]string{"COLOUR": "green"}})
		v.start()
		defer v.end()
		story(v)
	})
}

func (v *virtual) start() {
	v.Helper()
	client, err := apiserver.NewClient(&rest.Config{
		Host: "http://server", Transport: v.way, ContentConfig: rest.ContentConfig{ContentType: "application/json"},
	}, "n")
	if err != nil {
		v.Fatal(err)
	}
	ctx, cancel := context.WithCancel(v.Context())
	parts := composed(ctx, v, "n", v.root, client, v.use)
	ended := make(chan error, 1)
	go func() { ended <- machine.Together(ctx, parts...) }()
	v.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			v.Errorf("the agent ended with: %v", err)
		}
	}
}

// composed is a clusterkubelet that runs in the test's process, and serves nothing.
func composed(ctx context.Context, t testing.TB, node, root string, client *apiserver.Client, runtime containers) []machine.Part {
	t.Helper()
	c, err := parseFlags([]string{
		"--kubeconfig", "none", "--root-dir", root, "--hostname-override", node, "--node-ip", "10.0.0.1", "--max-pods", "10000", "--resolv-conf", "/dev/null",
	}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := compose(ctx, c, client, runtime)
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

// end deletes all pods, waits until nothing of them is left, not even on disk, and stops the agent.
func (v *virtual) end() {
	v.Helper()
	defer func() { v.stop() }()
	v.way.Clear()
	for _, pod := range v.api.Pods() {
		v.api.Delete("pods", pod.Namespace, pod.Name, 0)
	}
	v.until(10*time.Minute, "nothing is left on disk", func() bool {
		left, err := filepath.Glob(filepath.Join(v.root, "pods", "*"))
		return err == nil && len(left) == 0
	})
}

// until lets time pass until something is true.
func (v *virtual) until(within time.Duration, what string, is func() bool) {
	v.Helper()
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		synctest.Wait()
		if is() {
			return
		}
		if time.Since(begin) > within {
			v.Fatalf("within %v it did not come to this: %s\nrequests: %v\n%s", within, what, v.way.Take(), v.rt.Log())
		}
	}
}

func (v *virtual) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// says waits until the API is told that a pod is ready.
func (v *virtual) says(within time.Duration, name string) *corev1.Pod {
	v.Helper()
	v.until(within, name+" is ready", func() bool { pod := v.api.Pod("x", name); return pod != nil && ready(pod) })
	return v.api.Pod("x", name)
}

// gone waits until nothing is left of a pod: not in the API, nor in the runtime.
func (v *virtual) gone(within time.Duration, pod *corev1.Pod) {
	v.Helper()
	v.until(within, pod.Name+" is gone", func() bool {
		known := v.api.Pod("x", pod.Name)
		return (known == nil || known.UID != pod.UID) && v.seen(pod).Empty()
	})
}

func (v *virtual) seen(pod *corev1.Pod) *podmill.RuntimePod {
	v.Helper()
	seen, err := v.rt.InspectPod(v.Context(), pod.UID)
	if err != nil {
		v.Fatal(err)
	}
	return seen
}

// honest fails where what the API was told of a pod takes something back.
func (v *virtual) honest(pod *corev1.Pod) {
	v.Helper()
	rank := map[corev1.PodPhase]int{"": 0, corev1.PodPending: 0, corev1.PodRunning: 1, corev1.PodSucceeded: 2, corev1.PodFailed: 2}
	var before corev1.PodStatus
	for _, version := range v.api.Versions(pod.UID) {
		now := version.Status
		if rank[now.Phase] < rank[before.Phase] {
			v.Errorf("%s was %s and is told to be %s", pod.Name, before.Phase, now.Phase)
		}
		for i := range min(len(now.ContainerStatuses), len(before.ContainerStatuses)) {
			if now.ContainerStatuses[i].RestartCount < before.ContainerStatuses[i].RestartCount {
				v.Errorf("%s: restart count falls to %d", pod.Name, now.ContainerStatuses[i].RestartCount)
			}
		}
		before = now
	}
}

// count returns how many of the requests are of a kind.
func count(requests []apifault.Request, kind apifault.Request) int {
	n := 0
	for _, r := range requests {
		if r.Is(kind) {
			n++
		}
	}
	return n
}

// needy is a pod that needs a ConfigMap and, where volumes can be mounted, a token.
func needy(name string, opts ...podmilltest.PodOption) *corev1.Pod {
	pod := podmilltest.Pod("x/"+name, append(opts, podmilltest.Container("main", busybox, podmilltest.Command("sleep", "1000000")))...)
	pod.Spec.ServiceAccountName = "default"
	main := &pod.Spec.Containers[0]
	main.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}
	if os.Geteuid() == 0 {
		podmilltest.Volume("token", corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: new(int64(3600))}},
		}, DefaultMode: new(int32(0o644))}})(pod)
		main.VolumeMounts = []corev1.VolumeMount{{Name: "token", MountPath: "/token"}}
	}
	return pod
}

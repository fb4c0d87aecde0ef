package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/podmill/podmill/apiserver"
	"github.com/podmill/podmill/examples/internal/machine"
	"github.com/podmill/podmill/internal/testenv"
	"github.com/podmill/podmill/internal/testenv/apifault"
	"github.com/podmill/podmill/internal/testenv/memapi"
	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/status"
)

// A node with thirty pods to which nothing happens asks the API server for nothing but what says that it lives, and that its watches go on.
func TestThirtyIdlePodsAskForNothing(t *testing.T) {
	inVirtualTime(t, func(v *virtual) {
		for i := range 30 {
			pod := sleeper(fmt.Sprintf("p%d", i))
			pod.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}
			v.api.CreatePod(pod)
		}
		for i := range 30 {
			v.says(time.Minute, fmt.Sprintf("p%d", i))
		}
		v.pass(10 * time.Minute)
		v.way.Take()
		v.pass(2 * time.Hour)
		asked := v.way.Take()
		for _, want := range []struct {
			kind        apifault.Request
			least, most int
		}{
			{apifault.Request{Verb: "update", Resource: "leases"}, 719, 721},
			{apifault.Request{Verb: "patch", Resource: "nodes", Subresource: "status"}, 23, 25},
			// A watch lasts for five to ten minutes, as client-go asks for.
			{apifault.Request{Verb: "watch", Resource: "pods"}, 12, 25},
			{apifault.Request{Verb: "watch", Resource: "nodes"}, 12, 25},
			{apifault.Request{Verb: "watch", Resource: "services"}, 12, 25},
			{apifault.Request{Verb: "watch", Resource: "csidrivers"}, 12, 25},
			{apifault.Request{Verb: "watch", Resource: "configmaps"}, 12, 25}, // one for all pods
		} {
			if n := count(asked, want.kind); n < want.least || n > want.most {
				t.Errorf("%d times %v in two hours, want %d to %d", n, want.kind, want.least, want.most)
			}
			asked = slices.DeleteFunc(asked, func(r apifault.Request) bool { return r.Is(want.kind) })
		}
		if len(asked) != 0 {
			t.Errorf("%d other requests: %v", len(asked), asked[:min(len(asked), 20)])
		}
	})
}

// A start without init containers and readiness probe is told in two writes: that the pod has begun, and that it runs.
func TestAStartIsTwoWrites(t *testing.T) {
	inVirtualTime(t, func(v *virtual) {
		v.pass(time.Minute)
		for i := range 10 {
			v.api.CreatePod(sleeper(fmt.Sprintf("p%d", i)))
		}
		for i := range 10 {
			v.says(time.Minute, fmt.Sprintf("p%d", i))
		}
		v.pass(10 * time.Minute)
		for i := range 10 {
			name := fmt.Sprintf("p%d", i)
			writes := len(v.api.Versions(v.api.Pod("x", name).UID)) - 1
			if writes > 2 {
				t.Errorf("%d writes for the start of %s, want at most 2", writes, name)
			}
		}
	})
}

// The first statuses of a hundred pods are with a server 20 ms away within 150 ms.
func TestAHundredFirstStatuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New("n")
		way := apifault.New(server)
		way.Add(apifault.Fault{Effect: apifault.Slow(20 * time.Millisecond)})
		client, err := apiserver.NewClient(&rest.Config{Host: "http://server", Transport: way, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, "n")
		if err != nil {
			t.Fatal(err)
		}
		statuses := status.New(apiserver.NewStatusSink(client))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- statuses.Run(ctx) }()
		begin := time.Now()
		for i := range 100 {
			statuses.Set(server.CreatePod(sleeper(fmt.Sprintf("p%d", i))), corev1.PodStatus{Phase: corev1.PodPending, HostIP: "10.0.0.1"})
		}
		told := func() (n int) {
			for i := range 100 {
				if server.Pod("x", fmt.Sprintf("p%d", i)).Status.HostIP != "" {
					n++
				}
			}
			return n
		}
		for synctest.Wait(); told() < 100 && time.Since(begin) < time.Second; synctest.Wait() {
			time.Sleep(time.Millisecond)
		}
		if took := time.Since(begin); took > 150*time.Millisecond {
			t.Errorf("%d statuses were told in %v", told(), took)
		}
		cancel()
		if err := <-ended; err != nil || len(way.Take()) != 100 {
			t.Errorf("error %v, want 100 requests", err)
		}
	})
}

// B076: an optional Secret that is not there is an empty volume, which fills when it appears; one that has to be there is waited for.
func TestASecretThatAppears(t *testing.T) {
	testenv.Root(t)
	inVirtualTime(t, func(v *virtual) {
		volume := func(name string, optional bool) *corev1.Pod {
			pod := sleeper(name)
			podmilltest.Volume("key", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name, Optional: &optional, DefaultMode: new(int32(0o644))}})(pod)
			pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "key", MountPath: "/key"}}
			return pod
		}
		v.api.CreatePod(volume("optional", true))
		needed := v.api.CreatePod(volume("needed", false))
		runs := v.says(time.Minute, "optional")
		v.pass(10 * time.Minute)
		if n := len(v.seen(needed).Sandboxes); n != 0 {
			t.Errorf("a pod without its Secret has %d sandboxes", n)
		}
		for _, name := range []string{"optional", "needed"} {
			v.api.Create("secrets", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: name}, Data: map[string][]byte{"key": []byte("one")}})
		}
		v.says(10*time.Second, "needed")
		file := filepath.Join(v.root, "pods", string(runs.UID), "volumes", "kubernetes.io~secret", "key", "key")
		v.until(10*time.Second, "the volume is filled", func() bool {
			data, _ := os.ReadFile(file) //nolint:gosec // a test's own
			return string(data) == "one"
		})
	})
}

// B016: a pod that was over when the agent started anew stays so, though the node could not take it now: no sandbox, no event, and it counts for nobody.
func TestAPodThatIsOverIsNotAdmittedAgain(t *testing.T) {
	inVirtualTime(t, func(v *virtual) {
		v.stop()
		big := func(name string) *corev1.Pod {
			pod := sleeper(name)
			pod.Finalizers = []string{"example.com/kept"}
			pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: allCPU(t)}
			return pod
		}
		over := v.api.CreatePod(big("over"))
		v.api.Change("pods", "x", "over", func(o memapi.Object) {
			pod, _ := o.(*corev1.Pod)
			pod.Status.Phase = corev1.PodSucceeded
		})
		v.way.Take()
		v.start()
		v.api.CreatePod(big("next"))
		v.says(time.Minute, "next")
		v.pass(10 * time.Minute)
		if now := v.api.Pod("x", "over"); now.Status.Phase != corev1.PodSucceeded || now.Status.Reason != "" {
			t.Errorf("the pod that was over is %+v", now.Status)
		}
		if !v.seen(over).Empty() {
			t.Error("the pod that was over has a sandbox")
		}
		for _, e := range v.api.Events() {
			if e.InvolvedObject.UID == over.UID {
				t.Errorf("an event about a pod that was over: %s %s", e.Reason, e.Message)
			}
		}
	})
}

// allCPU is as much CPU as the machine has.
func allCPU(t *testing.T) resource.Quantity {
	t.Helper()
	resources, err := (&machine.Flags{Root: t.TempDir()}).Resources()
	if err != nil {
		t.Fatal(err)
	}
	return resources[corev1.ResourceCPU]
}

// B068: a pod that is deleted leaves the API with what its containers ended with.
func TestTheEndOfADeletedPodIsTold(t *testing.T) {
	inVirtualTime(t, func(v *virtual) {
		pod := needy("p", podmilltest.Grace(5*time.Second))
		pod.Spec.Containers[0].Command = podmilltest.Script("trap 'exit 7' TERM; sleep 1000000 & wait")
		v.api.CreatePod(pod)
		running := v.says(time.Minute, "p")
		v.api.Delete("pods", "x", "p", -1)
		v.gone(time.Minute, running)
		versions := v.api.Versions(running.UID)
		last := versions[len(versions)-1].Status
		if ended := last.ContainerStatuses[0].State.Terminated; ended == nil || ended.ExitCode != 7 || last.Phase != corev1.PodFailed {
			t.Errorf("the pod has gone with the status %+v", last)
		}
		if n := count(v.way.Take(), apifault.Request{Verb: "delete", Resource: "pods"}); n != 1 {
			t.Errorf("its end was confirmed %d times", n)
		}
	})
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/apiserver"
	"github.com/podmill/podmill/examples/internal/machine"
	"github.com/podmill/podmill/internal/testenv"
	"github.com/podmill/podmill/internal/testenv/testapi"
	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/status"
)

// bare is a client with a node's rights and nothing around it.
func bare(b *testing.B, api *testapi.API) rest.Interface {
	b.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), authenticationv1.AddToScheme(scheme)); err != nil {
		b.Fatal(err)
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	config := rest.CopyConfig(api.NodeConfig)
	config.APIPath, config.GroupVersion, config.QPS = "/api", &corev1.SchemeGroupVersion, -1
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		b.Fatal(err)
	}
	return client
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// BenchmarkFirstStatuses tells a real server what has become of a hundred pods, beside a bare loop of as many PATCHes, thirty-two at a time. A round is both, in turns.
func BenchmarkFirstStatuses(b *testing.B) {
	const pods, parallel = 100, 32
	api := testapi.New(b)
	all := make([]*corev1.Pod, pods)
	for i := range all {
		all[i] = api.CreatePod(sleeper(fmt.Sprintf("p%d", i)))
	}
	client, err := apiserver.NewClient(api.NodeConfig, api.Node)
	if err != nil {
		b.Fatal(err)
	}
	raw := bare(b, api)
	told := make(chan error, pods)
	statuses := status.New(apiserver.NewStatusSink(client), status.WithObserver(status.Observer{
		Sent: func(_ podmill.PodRef, _ time.Duration, err error) { told <- err },
	}))
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = statuses.Run(ctx) })
	defer running.Wait()
	defer cancel()
	news := func(round int, who string) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodPending, HostIP: "10.0.0.1", Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady", Message: fmt.Sprint(who, round)},
		}}
	}
	ours := func(round int) time.Duration {
		begin := time.Now()
		for _, pod := range all {
			statuses.Set(pod, news(round, "podmill"))
		}
		for range all {
			if err := <-told; err != nil {
				b.Fatal(err)
			}
		}
		return time.Since(begin)
	}
	theirs := func(round int) time.Duration {
		next := news(round, "bare")
		begin := time.Now()
		work := make(chan *corev1.Pod)
		var workers sync.WaitGroup
		for range parallel {
			workers.Go(func() {
				for pod := range work {
					patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": next})
					err := raw.Patch(types.StrategicMergePatchType).Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("status").Body(patch).Do(ctx).Into(&corev1.Pod{})
					if err != nil {
						b.Error(err)
					}
				}
			})
		}
		for _, pod := range all {
			work <- pod
		}
		close(work)
		workers.Wait()
		return time.Since(begin)
	}
	ours(-1)
	theirs(-1)
	var a, z []time.Duration
	for round := 0; b.Loop(); round++ {
		a, z = append(a, ours(round)), append(z, theirs(round))
	}
	b.ReportMetric(ms(median(a)), "ms")
	b.ReportMetric(ms(median(z)), "bare-ms")
	b.ReportMetric(ms(median(a))/ms(median(z)), "ratio")
}

// timed notes when a sandbox is asked for.
type timed struct {
	*podmilltest.Runtime
	asked chan time.Time
}

func (t *timed) RunSandbox(ctx context.Context, spec *podmill.SandboxSpec) (string, error) {
	t.asked <- time.Now()
	return t.Runtime.RunSandbox(ctx, spec)
}

// BenchmarkFromTheAPIToTheRuntime is how long it takes from the server's answer that a pod was created to the call RunPodSandbox, beside a bare watch that
// sees the pod and, where the pod needs them, a bare request for the ConfigMap and then one for the token.
func BenchmarkFromTheAPIToTheRuntime(b *testing.B) {
	testenv.Root(b)
	for _, needs := range []string{"nothing", "ConfigMap+token"} {
		b.Run("needs="+needs, func(b *testing.B) {
			api := testapi.New(b)
			api.Create("configmaps", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"a": "b"}}, nil)
			raw := bare(b, api)
			rt := &timed{podmilltest.NewRuntime(podmilltest.WithImages(podmilltest.ScriptImage(busybox, "sleep 1000000"))), make(chan time.Time, 1)}
			defer rt.Close()
			client, err := apiserver.NewClient(api.NodeConfig, api.Node)
			if err != nil {
				b.Fatal(err)
			}
			root := b.TempDir()
			ctx, cancel := context.WithCancel(context.Background())
			parts := composed(ctx, b, api.Node, root, client, rt)
			var running sync.WaitGroup
			running.Go(func() { _ = machine.Together(ctx, parts...) })
			defer running.Wait()
			defer cancel()
			api.Eventually("the node is there", func() bool { return api.Get("nodes", api.Node, &corev1.Node{}) })

			seen := watching(ctx, b, raw, api)
			var ours, theirs []time.Duration
			for round := 0; b.Loop(); round++ {
				pod := sleeper(fmt.Sprintf("p%d", round))
				if needs != "nothing" {
					pod = needy(pod.Name, podmilltest.Grace(0))
					podmilltest.Volume("settings", corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}})(pod)
					pod.Spec.Containers[0].EnvFrom = nil
					pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "settings", MountPath: "/settings"})
				}
				pod.Spec.AutomountServiceAccountToken = new(bool)
				created := api.CreatePod(pod)
				answered := time.Now()
				theirs = append(theirs, (<-seen).Sub(answered))
				ours = append(ours, (<-rt.asked).Sub(answered))
				if needs != "nothing" { // nobody else asks by now
					begin := time.Now()
					fetch(ctx, b, raw, created)
					theirs[round] += time.Since(begin)
				}
				api.Delete("pods", created.Name, 0)
			}
			b.ReportMetric(ms(median(ours)), "ms")
			b.ReportMetric(ms(median(theirs)), "bare-ms")
		})
	}
}

// fetch asks for what a pod needs.
func fetch(ctx context.Context, b *testing.B, raw rest.Interface, pod *corev1.Pod) {
	b.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: new(int64(3600)), BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	err := errors.Join(
		raw.Get().Namespace(pod.Namespace).Resource("configmaps").Name("settings").Do(ctx).Error(),
		raw.Post().Namespace(pod.Namespace).Resource("serviceaccounts").Name("default").SubResource("token").Body(request).Do(ctx).Error(),
	)
	if err != nil {
		b.Fatal(err)
	}
}

// watching tells when a bare watch sees each new pod.
func watching(ctx context.Context, b *testing.B, raw rest.Interface, api *testapi.API) <-chan time.Time {
	b.Helper()
	w, err := raw.Get().Resource("pods").SpecificallyVersionedParams(&metav1.ListOptions{
		Watch: true, FieldSelector: fields.OneTermEqualSelector("spec.nodeName", api.Node).String(),
	}, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"}).Watch(ctx)
	if err != nil {
		b.Fatal(err)
	}
	seen := make(chan time.Time, 1)
	go func() {
		for event := range w.ResultChan() {
			if event.Type == "ADDED" {
				seen <- time.Now()
			}
		}
	}()
	b.Cleanup(w.Stop)
	return seen
}

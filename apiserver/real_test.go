package apiserver_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/apiserver"
	"github.com/podmill/podmill/internal/testenv"
	"github.com/podmill/podmill/internal/testenv/testapi"
	"github.com/podmill/podmill/podmilltest"
)

func newClient(t testing.TB, config *rest.Config, node string) *apiserver.Client {
	t.Helper()
	client, err := apiserver.NewClient(config, node)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// The source keeps a source's promises on a real API server, with a node's rights.
func TestPodSourceOnARealServer(t *testing.T) {
	podmilltest.PodSourceTest(t, func(t *testing.T) podmilltest.PodSourceEnv {
		api := testapi.New(t)
		return podmilltest.PodSourceEnv{
			Source: apiserver.NewPodSource(newClient(t, api.NodeConfig, api.Node)),
			Put: func(_ *testing.T, pod *corev1.Pod) {
				if api.Pod(pod.Name) == nil {
					api.CreatePod(pod)
					return
				}
				api.Patch("pods", pod.Name, map[string]any{"spec": map[string]any{"containers": []any{
					map[string]any{"name": pod.Spec.Containers[0].Name, "image": pod.Spec.Containers[0].Image},
				}}})
			},
			Remove: func(_ *testing.T, pod *corev1.Pod) { api.Delete("pods", pod.Name, 0) },
		}
	})
}

// The sink keeps a sink's promises on a real API server, with a node's rights.
func TestStatusSinkOnARealServer(t *testing.T) {
	podmilltest.StatusSinkTest(t, func(t *testing.T) podmilltest.StatusSinkEnv {
		api := testapi.New(t)
		var writes atomic.Int32
		config := rest.CopyConfig(api.NodeConfig)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodPatch {
					writes.Add(1)
				}
				return next.RoundTrip(r)
			})
		})
		sink := &known{sink: apiserver.NewStatusSink(newClient(t, config, api.Node)), namespace: api.Namespace, pods: map[types.UID]*corev1.Pod{}}
		return podmilltest.StatusSinkEnv{
			Sink: sink,
			Add: func(_ *testing.T, pod *corev1.Pod) {
				api.Delete("pods", pod.Name, 0)
				sink.add(pod.UID, api.CreatePod(pod))
			},
			Status: func(_ *testing.T, pod *corev1.Pod) *corev1.PodStatus {
				found := api.Pod(pod.Name)
				if found == nil || found.UID != sink.of(pod).UID {
					return nil
				}
				found.Status.QOSClass = "" // the server's own
				return &found.Status
			},
			Writes: func() int { return int(writes.Load()) },
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// known is a sink for pods by the UIDs that a test gave them, which the server does not let them have.
type known struct {
	sink      podmill.StatusSink
	namespace string
	mu        sync.Mutex
	pods      map[types.UID]*corev1.Pod
}

func (k *known) add(uid types.UID, pod *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pods[uid] = pod
}

func (k *known) of(pod *corev1.Pod) *corev1.Pod {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.pods[pod.UID]
}

func (k *known) UpdateStatus(ctx context.Context, pod *corev1.Pod, status *corev1.PodStatus) error {
	return k.sink.UpdateStatus(ctx, k.of(pod), status)
}

func (k *known) FinishPod(ctx context.Context, pod *corev1.Pod) error {
	return k.sink.FinishPod(ctx, k.of(pod))
}

// What others say in a status stays, whatever the node says: conditions of a readiness gate. What is the node's is as it says.
func TestStatusOfOthersStays(t *testing.T) {
	api := testapi.New(t)
	pod := api.CreatePod(podmilltest.Pod("x/p", podmilltest.Container("c", "i")))
	sink := apiserver.NewStatusSink(newClient(t, api.NodeConfig, api.Node))
	ready := func(status corev1.ConditionStatus) *corev1.PodStatus {
		return &corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.1.1.1", PodIPs: []corev1.PodIP{{IP: "10.1.1.1"}}, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: status}, {Type: "example.com/gate", Status: corev1.ConditionFalse, Reason: "Stale"},
		}}
	}
	if err := sink.UpdateStatus(t.Context(), pod, ready(corev1.ConditionFalse)); err != nil {
		t.Fatal(err)
	}
	api.Patch("pods", pod.Name, map[string]any{"status": map[string]any{
		"podIPs":     []any{map[string]any{"ip": "10.1.1.1"}, map[string]any{"ip": "fd00::1"}},
		"conditions": []any{map[string]any{"type": "example.com/gate", "status": "True"}},
	}}, "status")
	if err := sink.UpdateStatus(t.Context(), pod, ready(corev1.ConditionTrue)); err != nil {
		t.Fatal(err)
	}
	status := api.Pod(pod.Name).Status
	conditions := map[corev1.PodConditionType]corev1.ConditionStatus{}
	for _, c := range status.Conditions {
		conditions[c.Type] = c.Status
	}
	if conditions["example.com/gate"] != corev1.ConditionTrue || conditions[corev1.PodReady] != corev1.ConditionTrue {
		t.Errorf("status %+v, want the gate True and Ready True", status)
	}
	if len(status.PodIPs) != 1 || status.PodIPs[0].IP != "10.1.1.1" {
		t.Errorf("podIPs %v, want the node's alone", status.PodIPs)
	}
}

// The end of a pod that was deleted is confirmed, and that of one which was not is not a deletion.
func TestFinishConfirmsADeletion(t *testing.T) {
	api := testapi.New(t)
	sink := apiserver.NewStatusSink(newClient(t, api.NodeConfig, api.Node))
	pod := api.CreatePod(podmilltest.Pod("x/p", podmilltest.Container("c", "i")))
	if err := sink.FinishPod(t.Context(), pod); err != nil || api.Pod("p") == nil {
		t.Fatalf("error %v, pod %v; nobody has deleted it", err, api.Pod("p"))
	}
	api.Delete("pods", "p", 30)
	if pod = api.Pod("p"); pod == nil || pod.DeletionTimestamp == nil {
		t.Fatalf("pod %v, want it to wait for its node", pod)
	}
	for range 2 {
		if err := sink.FinishPod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	if api.Pod("p") != nil {
		t.Error("the pod is still there")
	}
	if err := sink.UpdateStatus(t.Context(), pod, &corev1.PodStatus{Phase: corev1.PodFailed}); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("a status for a pod that is gone: %v, want ErrGone", err)
	}
}

// What somebody else writes over a status is restored, once, and nothing is written for the news of the node's own writes.
func TestAStatusIsRestored(t *testing.T) {
	api := testapi.New(t)
	requests := &tap{}
	client := newClient(t, requests.on(api.NodeConfig), api.Node)
	pod := api.CreatePod(podmilltest.Pod("x/p", podmilltest.Container("c", "i")))
	sink := apiserver.NewStatusSink(client)
	seen := make(chan podmill.PodUpdate, 100)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() {
		ended <- apiserver.NewPodSource(client, apiserver.WithStatuses(sink)).Run(ctx, func(u podmill.PodUpdate) { seen <- u })
	}()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	<-seen
	for _, ready := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue} {
		err := sink.UpdateStatus(t.Context(), pod, &corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: ready}, {Type: corev1.ContainersReady, Status: ready},
		}})
		if err != nil {
			t.Fatal(err)
		}
		<-seen
	}
	api.Patch("pods", "p", map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False", "reason": "NodeStatusUnknown"}}}}, "status")
	api.Eventually("it is ready again", func() bool {
		for _, c := range api.Pod("p").Status.Conditions {
			if c.Type == corev1.PodReady {
				return c.Status == corev1.ConditionTrue && c.Reason == ""
			}
		}
		return false
	})
	if n := requests.count("PATCH"); n != 3 {
		t.Errorf("%d writes, want 2 and one more", n)
	}
}

// A node may ask who somebody is and what they may, and the server's answers are the ones that count.
func TestReviewsOnARealServer(t *testing.T) {
	api := testapi.New(t)
	admin, err := clientcmd.BuildConfigFromFlags("", testenv.APIServer(t).Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	reviews := apiserver.NewReviews(newClient(t, api.NodeConfig, api.Node))
	user, err := reviews.Authenticate(t.Context(), admin.BearerToken)
	if err != nil || user == nil || user.Username != "admin" {
		t.Fatalf("the administrator is %v, %v", user, err)
	}
	if nobody, err := reviews.Authenticate(t.Context(), "not a token"); err != nil || nobody != nil {
		t.Errorf("nobody's token is of %v, %v", nobody, err)
	}
	for _, tc := range []struct {
		name   string
		groups []string
		want   bool
	}{{user.Username, user.Groups, true}, {"somebody", []string{"system:authenticated"}, false}} {
		allowed, _, err := reviews.Authorize(t.Context(), &authorizationv1.SubjectAccessReviewSpec{
			User: tc.name, Groups: tc.groups,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "create", Version: "v1", Resource: "nodes", Subresource: "proxy", Name: api.Node},
		})
		if err != nil || allowed != tc.want {
			t.Errorf("%s may run commands: %v, %v, want %v", tc.name, allowed, err, tc.want)
		}
	}
}

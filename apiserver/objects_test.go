package apiserver_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/apiserver"
	"github.com/podmill/podmill/internal/testenv/testapi"
	"github.com/podmill/podmill/podmilltest"
)

// tap notes the requests of a client.
type tap struct {
	mu   sync.Mutex
	seen []string
}

func (l *tap) on(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			l.mu.Lock()
			l.seen = append(l.seen, r.Method+" "+r.URL.Path+"?"+r.URL.RawQuery)
			l.mu.Unlock()
			return next.RoundTrip(r)
		})
	})
	return config
}

// count returns how many requests had a text in them, and forgets all requests.
func (l *tap) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, line := range l.seen {
		if strings.Contains(line, text) {
			n++
		}
	}
	l.seen = nil
	return n
}

// objectsOf runs the objects of a source on a real server, and returns what they tell.
func objectsOf(t *testing.T, client *apiserver.Client) (*apiserver.Objects, chan podmill.ObjectRef) {
	t.Helper()
	objects, changed := apiserver.NewObjects(client), make(chan podmill.ObjectRef, 100)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = objects.Follow(apiserver.NewPodSource(client)).Run(ctx, func(podmill.PodUpdate) {}) })
	running.Go(func() { _ = objects.WatchObjects(ctx, func(ref podmill.ObjectRef) { changed <- ref }) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return objects, changed
}

// A Secret that two pods refer to is watched once, read without asking, told of when it changes, and let go with the last pod.
func TestAnObjectIsWatchedWhilePodsReferToIt(t *testing.T) {
	api := testapi.New(t)
	requests := &tap{}
	objects, changed := objectsOf(t, newClient(t, requests.on(api.NodeConfig), api.Node))
	secret := func(value string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, Data: map[string][]byte{"key": []byte(value)}}
	}
	api.Create("secrets", secret("one"), nil)
	for _, name := range []string{"a", "b"} {
		pod := podmilltest.Pod("x/"+name, podmilltest.Container("c", "i"))
		pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "key"}, {Name: "missing"}}
		api.CreatePod(pod)
	}
	api.Eventually("the secret is read", func() bool {
		found, err := objects.Secret(t.Context(), api.Namespace, "key")
		return err == nil && string(found.Data["key"]) == "one"
	})
	api.Eventually("both watches are open", func() bool {
		_, err := objects.Secret(t.Context(), api.Namespace, "missing")
		return errors.Is(err, podmill.ErrNotFound)
	})
	requests.count("")
	for len(changed) > 0 {
		<-changed
	}
	api.Patch("secrets", "key", map[string]any{"data": map[string]any{"key": []byte("two")}})
	for ref := range changed { // and of what others make meanwhile
		if ref == (podmill.ObjectRef{Kind: "Secret", Namespace: api.Namespace, Name: "key"}) {
			break
		}
	}
	if found, err := objects.Secret(t.Context(), api.Namespace, "key"); err != nil || string(found.Data["key"]) != "two" {
		t.Errorf("secret %v, error %v", found, err)
	}
	if n := requests.count("/secrets/"); n != 0 {
		t.Errorf("%d requests, want none: both are watched", n)
	}
	for _, name := range []string{"a", "b"} {
		api.Delete("pods", name, 0)
	}
	// Without a pod the node may not read it, and nobody remembers it.
	api.Eventually("it is asked for, and refused", func() bool {
		_, err := objects.Secret(t.Context(), api.Namespace, "key")
		return err != nil && !errors.Is(err, podmill.ErrNotFound) && strings.Contains(err.Error(), "forbidden")
	})
}

// Services are those of the namespace and the API server's own.
func TestServices(t *testing.T) {
	api := testapi.New(t)
	objects, _ := objectsOf(t, newClient(t, api.NodeConfig, api.Node))
	api.Create("services", &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}, nil)
	api.Eventually("both are there", func() bool {
		services, err := objects.Services(t.Context(), api.Namespace)
		names := map[string]bool{}
		for _, s := range services {
			names[s.Namespace+"/"+s.Name] = true
		}
		return err == nil && len(names) == 2 && names["default/kubernetes"] && names[api.Namespace+"/shop"]
	})
}

// A token is the pod's: bound to it, of its service account.
func TestAToken(t *testing.T) {
	api := testapi.New(t)
	pod := api.CreatePod(podmilltest.Pod("x/p", podmilltest.Container("c", "i")))
	objects := apiserver.NewObjects(newClient(t, api.NodeConfig, api.Node))
	// The authorizer may not have heard of the pod yet.
	token, err := objects.ServiceAccountToken(t.Context(), pod, &corev1.ServiceAccountTokenProjection{ExpirationSeconds: new(int64(600))})
	if err != nil {
		t.Fatal(err)
	}
	if life := time.Until(token.Expires); strings.Count(token.Value, ".") != 2 || life < 9*time.Minute || life > 11*time.Minute {
		t.Errorf("token %v, %d letters, lives for %v", token, len(token.Value), life)
	}
	pod.UID = "another"
	if _, err := objects.ServiceAccountToken(t.Context(), pod, &corev1.ServiceAccountTokenProjection{}); err == nil {
		t.Error("a token was given for a pod that is not there")
	}
}

// What is said again is counted on the event that said it first.
func TestEventsAreCounted(t *testing.T) {
	api := testapi.New(t)
	pod := api.CreatePod(podmilltest.Pod("x/p", podmilltest.Container("c", "i")))
	recorder := apiserver.NewEventRecorder(newClient(t, api.NodeConfig, api.Node))
	for range 3 {
		recorder.Event(podmill.ReferenceTo(pod, "c"), corev1.EventTypeWarning, "BackOff", "Back-off restarting")
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- recorder.Run(ctx) }()
	cancel() // what waits is written all the same
	if err := <-ended; err != nil {
		t.Error(err)
	}
	events := &corev1.EventList{}
	api.List("events", events)
	if len(events.Items) != 1 || events.Items[0].Count != 3 || events.Items[0].InvolvedObject.FieldPath != "spec.containers{c}" || events.Items[0].Source.Component != "kubelet" {
		t.Errorf("events %+v, want one with a count of 3; %d are lost", events.Items, recorder.Dropped())
	}
}

// A lease that nobody else writes is one request.
func TestALeaseIsRenewed(t *testing.T) {
	api := testapi.New(t)
	requests := &tap{}
	nodes := apiserver.NewNodes(newClient(t, requests.on(api.NodeConfig), api.Node))
	node, err := nodes.CreateNode(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: api.Node}})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := nodes.RenewLease(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	if n := requests.count("/leases"); n != 4 { // a look, a creation, two renewals
		t.Errorf("%d requests about the lease, want 4", n)
	}
	node.ResourceVersion = ""
	if _, err := nodes.CreateNode(t.Context(), node); !errors.Is(err, podmill.ErrConflict) {
		t.Errorf("creating it again: %v, want ErrConflict", err)
	}
}

// What a node's status does not say any more is gone from the API, for which it need not be written twice.
func TestANodeTakesBackWhatItSaid(t *testing.T) {
	api := testapi.New(t)
	nodes := apiserver.NewNodes(newClient(t, api.NodeConfig, api.Node))
	if _, err := nodes.CreateNode(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: api.Node}}); err != nil {
		t.Fatal(err)
	}
	yes, bytes := true, int64(1)
	full := &corev1.NodeStatus{
		Images: []corev1.ContainerImage{{Names: []string{"i"}}}, VolumesInUse: []corev1.UniqueVolumeName{"v"},
		RuntimeHandlers: []corev1.NodeRuntimeHandler{{Name: "runc"}}, Features: &corev1.NodeFeatures{SupplementalGroupsPolicy: &yes},
		NodeInfo: corev1.NodeSystemInfo{Swap: &corev1.NodeSwapStatus{Capacity: &bytes}},
	}
	node, err := nodes.UpdateNodeStatus(t.Context(), full)
	if err != nil || node.Status.Features == nil || node.Status.NodeInfo.Swap == nil {
		t.Fatalf("status %+v, %v", node.Status, err)
	}
	node, err = nodes.UpdateNodeStatus(t.Context(), &corev1.NodeStatus{})
	if s := &node.Status; err != nil || s.Images != nil || s.VolumesInUse != nil || s.RuntimeHandlers != nil || s.Features != nil || s.NodeInfo.Swap != nil {
		t.Errorf("status %+v, %v", s, err)
	}
}

// Package testapi gives tests a namespace of a real API server, and an administrator's hands in it.
package testapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/podmill/podmill/internal/testenv"
)

// API is a namespace of a test's own, and a node of a test's own that does not exist yet.
type API struct {
	testing.TB
	Namespace string
	Node      string
	// NodeConfig has the node's credentials, NodeKubeconfig is the same as a file.
	NodeConfig     *rest.Config
	NodeKubeconfig string
	// AdminConfig has the administrator's credentials.
	AdminConfig *rest.Config
	Plane       testenv.ControlPlane

	core, classes rest.Interface
}

// New makes a namespace with the service account default, and credentials for a node. When the test ends, the pods in it and the node are removed.
func New(t testing.TB) *API {
	t.Helper()
	return In(t, testenv.APIServer(t))
}

// In is New in a control plane.
func In(t testing.TB, plane testenv.ControlPlane) *API {
	t.Helper()
	a := &API{TB: t, Namespace: testenv.UniqueName(t), Node: "n-" + testenv.UniqueName(t), Plane: plane}
	a.NodeKubeconfig = plane.NodeKubeconfig(t, a.Node)
	var err error
	if a.NodeConfig, err = clientcmd.BuildConfigFromFlags("", a.NodeKubeconfig); err != nil {
		t.Fatal(err)
	}
	if a.AdminConfig, err = clientcmd.BuildConfigFromFlags("", plane.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	admin := rest.CopyConfig(a.AdminConfig)
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), authenticationv1.AddToScheme(scheme), nodev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	admin.APIPath, admin.GroupVersion, admin.QPS = "/api", &corev1.SchemeGroupVersion, -1
	admin.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	if a.core, err = rest.RESTClientFor(admin); err != nil {
		t.Fatal(err)
	}
	admin.APIPath, admin.GroupVersion = "/apis", &nodev1.SchemeGroupVersion
	if a.classes, err = rest.RESTClientFor(admin); err != nil {
		t.Fatal(err)
	}
	a.do("create namespace", a.core.Post().Resource("namespaces").Body(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.Namespace}}), nil)
	t.Cleanup(a.clear)
	if plane.Whole { // controllers make the rest
		a.Eventually("there is a service account", func() bool { return a.Get("serviceaccounts", "default", &corev1.ServiceAccount{}) })
		return a
	}
	a.Create("serviceaccounts", &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, nil)
	a.Create("configmaps", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kube-root-ca.crt"}, Data: map[string]string{"ca.crt": string(admin.CAData)}}, nil)
	return a
}

func (a *API) clear() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	now := &metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	err := errors.Join(
		a.core.Delete().Namespace(a.Namespace).Resource("pods").Body(now).Do(ctx).Error(),
		client(a.core.Delete().Resource("namespaces").Name(a.Namespace).Do(ctx).Error()),
		client(a.core.Delete().Resource("nodes").Name(a.Node).Do(ctx).Error()),
	)
	if err != nil {
		a.Errorf("clear namespace %s: %v", a.Namespace, err)
	}
}

// client passes over what is not there.
func client(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (a *API) do(what string, request *rest.Request, into runtime.Object) {
	a.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	result := request.Do(ctx)
	err := result.Error()
	if err == nil && into != nil {
		err = result.Into(into)
	}
	if err != nil {
		a.Fatalf("%s: %v", what, err)
	}
}

// Create creates an object in the namespace. What comes back goes into into, which may be nil.
func (a *API) Create(resource string, object, into runtime.Object) {
	a.Helper()
	a.do("create "+resource, a.core.Post().Namespace(a.Namespace).Resource(resource).Body(object), into)
}

// CreateClass creates a RuntimeClass, which is not the namespace's own and goes when the test ends.
func (a *API) CreateClass(class *nodev1.RuntimeClass) {
	a.Helper()
	a.do("create RuntimeClass", a.classes.Post().Resource("runtimeclasses").Body(class), nil)
	a.Cleanup(func() { a.DeleteClass(class.Name) })
}

// DeleteClass deletes a RuntimeClass; one that is not there is deleted.
func (a *API) DeleteClass(name string) {
	a.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := client(a.classes.Delete().Resource("runtimeclasses").Name(name).Do(ctx).Error()); err != nil {
		a.Fatalf("delete RuntimeClass %s: %v", name, err)
	}
}

// CreatePod creates a pod that is bound to the node, and returns it as the server has it.
func (a *API) CreatePod(pod *corev1.Pod) *corev1.Pod {
	a.Helper()
	pod = pod.DeepCopy()
	pod.Namespace, pod.Spec.NodeName = a.Namespace, a.Node
	created := &corev1.Pod{}
	a.Create("pods", pod, created)
	return created
}

// Pod returns a pod, nil if there is none of that name.
func (a *API) Pod(name string) *corev1.Pod {
	a.Helper()
	pod := &corev1.Pod{}
	if !a.Get("pods", name, pod) {
		return nil
	}
	return pod
}

// Get gets an object of the namespace, and reports whether it is there.
func (a *API) Get(resource, name string, into runtime.Object) bool {
	a.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	request := a.core.Get().Resource(resource).Name(name)
	if resource != "nodes" {
		request = request.Namespace(a.Namespace)
	}
	err := request.Do(ctx).Into(into)
	if err != nil && !apierrors.IsNotFound(err) {
		a.Fatalf("get %s %s: %v", resource, name, err)
	}
	return err == nil
}

// List lists objects of the namespace.
func (a *API) List(resource string, into runtime.Object) {
	a.Helper()
	a.do("list "+resource, a.core.Get().Namespace(a.Namespace).Resource(resource), into)
}

// Token returns a token of the namespace's service account default, which may nothing.
func (a *API) Token() string {
	a.Helper()
	request := &authenticationv1.TokenRequest{}
	a.do("create a token", a.core.Post().Namespace(a.Namespace).Resource("serviceaccounts").Name("default").SubResource("token").
		Body(&authenticationv1.TokenRequest{}), request)
	return request.Status.Token
}

// OpenLog opens the log of a pod's container, by the parameters of such a request. It is the caller's to close.
func (a *API) OpenLog(pod string, params map[string]string) (io.ReadCloser, error) {
	request := a.core.Get().Namespace(a.Namespace).Resource("pods").Name(pod).SubResource("log")
	for name, value := range params {
		request.Param(name, value)
	}
	return request.Stream(context.Background())
}

// Patch changes a node or an object of the namespace, or a part of it, by a strategic merge patch.
func (a *API) Patch(resource, name string, patch any, subresource ...string) {
	a.Helper()
	if err := a.TryPatch(resource, name, patch, subresource...); err != nil {
		a.Fatalf("patch %s %s: %v", resource, name, err)
	}
}

// TryPatch is Patch where the server may refuse.
func (a *API) TryPatch(resource, name string, patch any, subresource ...string) error {
	a.Helper()
	data, err := json.Marshal(patch)
	if err != nil {
		a.Fatal(err)
	}
	request := a.core.Patch(types.StrategicMergePatchType).Resource(resource).Name(name).SubResource(subresource...).Body(data)
	if resource != "nodes" {
		request = request.Namespace(a.Namespace)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return request.Do(ctx).Error()
}

// Delete deletes an object of the namespace, with a grace period unless that is negative; one that is not there is deleted.
func (a *API) Delete(resource, name string, grace int64) {
	a.Helper()
	opts := &metav1.DeleteOptions{}
	if grace >= 0 {
		opts.GracePeriodSeconds = &grace
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	request := a.core.Delete().Resource(resource).Name(name).Body(opts)
	if resource != "nodes" {
		request = request.Namespace(a.Namespace)
	}
	if err := client(request.Do(ctx).Error()); err != nil {
		a.Fatalf("delete %s %s: %v", resource, name, err)
	}
}

// WatchPods notes, from now on until the test ends, what each pod of the namespace becomes.
func (a *API) WatchPods() (versions func(name string) []*corev1.Pod) {
	a.Helper()
	list := &corev1.PodList{}
	a.List("pods", list)
	ctx, cancel := context.WithCancel(context.Background())
	watch, err := a.core.Get().Namespace(a.Namespace).Resource("pods").Param("watch", "true").Param("resourceVersion", list.ResourceVersion).Watch(ctx)
	if err != nil {
		a.Fatal(err)
	}
	var mu sync.Mutex
	all := map[string][]*corev1.Pod{}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for event := range watch.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok {
				mu.Lock()
				all[pod.Name] = append(all[pod.Name], pod)
				mu.Unlock()
			}
		}
	}()
	a.Cleanup(func() { cancel(); watch.Stop(); <-ended })
	return func(name string) []*corev1.Pod {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all[name])
	}
}

// Raw sends an object, which may be nil, to a path below the API server, and puts what comes back into into, which may be nil. It reports whether there is such a thing. It is for
// what lies in no namespace and in other groups.
func (a *API) Raw(verb, path string, object, into any) bool {
	a.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	request := a.core.Verb(verb).AbsPath(path).SetHeader("Accept", "application/json")
	if object != nil {
		body, err := json.Marshal(object)
		if err != nil {
			a.Fatal(err)
		}
		kind := "application/json"
		if verb == "PATCH" {
			kind = string(types.MergePatchType)
		}
		request = request.Body(body).SetHeader("Content-Type", kind)
	}
	data, err := request.Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return false
	}
	if err == nil && into != nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		a.Fatalf("%s %s: %v: %s", verb, path, err, data)
	}
	return true
}

// Eventually waits for something to become true.
func (a *API) Eventually(what string, is func() bool) {
	a.Helper()
	timeout := time.After(90 * time.Second)
	for !is() {
		select {
		case <-timeout:
			a.Fatalf("it did not come to this: %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

package apiserver_test

import (
	"errors"
	"testing"

	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/testenv"
	"github.com/podmill/podmill/internal/testenv/testapi"
	"github.com/podmill/podmill/podmilltest"
)

// A RuntimeClass that a pod names is watched while the pod is there, with a node's rights: read without asking, and told of when it goes and comes back. Another is asked for.
func TestARuntimeClassIsWatched(t *testing.T) {
	api, name := testapi.New(t), testenv.UniqueName(t)
	requests := &tap{}
	class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: "kata"}
	api.CreateClass(class)
	objects, changed := objectsOf(t, newClient(t, requests.on(api.NodeConfig), api.Node))
	if found, err := objects.RuntimeClass(t.Context(), name); err != nil || found.Handler != "kata" {
		t.Fatalf("class %v, error %v", found, err)
	}
	if _, err := objects.RuntimeClass(t.Context(), "missing-"+name); !errors.Is(err, podmill.ErrNotFound) {
		t.Fatalf("error %v, want ErrNotFound", err)
	}
	pod := podmilltest.Pod("x/p", podmilltest.Container("c", "i"))
	pod.Spec.RuntimeClassName = &name
	api.CreatePod(pod)
	told := func() {
		t.Helper()
		for ref := range changed {
			if ref == (podmill.ObjectRef{Kind: "RuntimeClass", Name: name}) {
				return
			}
		}
	}
	told()
	requests.count("")
	if found, err := objects.RuntimeClass(t.Context(), name); err != nil || found.Handler != "kata" {
		t.Errorf("class %v, error %v", found, err)
	}
	api.DeleteClass(name)
	told()
	if _, err := objects.RuntimeClass(t.Context(), name); !errors.Is(err, podmill.ErrNotFound) {
		t.Errorf("error %v, want ErrNotFound", err)
	}
	api.CreateClass(class)
	told()
	if n := requests.count("/runtimeclasses/"); n != 0 {
		t.Errorf("%d requests, want none: it is watched", n)
	}
}

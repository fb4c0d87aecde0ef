package apiserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/apiserver"
)

// A status reaches the API server as one PATCH that carries the pod's UID.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var patch struct {
			Metadata metav1.ObjectMeta
			Status   corev1.PodStatus
		}
		_ = json.NewDecoder(r.Body).Decode(&patch)
		fmt.Println(r.Method, r.URL.Path, patch.Metadata.UID, patch.Status.Phase)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion": "v1", "kind": "Pod"}`))
	}))
	defer server.Close()

	client, err := apiserver.NewClient(&rest.Config{Host: server.URL}, "node1")
	if err != nil {
		fmt.Println(err)
		return
	}
	var sink podmill.StatusSink = apiserver.NewStatusSink(client)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart", UID: "4f2a"}}
	for range 3 { // what is written already is not written again
		if err := sink.UpdateStatus(context.Background(), pod, &corev1.PodStatus{Phase: corev1.PodRunning}); err != nil {
			fmt.Println(err)
		}
	}
	// Output: PATCH /api/v1/namespaces/shop/pods/cart/status 4f2a Running
}

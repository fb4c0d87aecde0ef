package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"

	. "github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/server"
)

// full is an agent of 110 pods.
type full struct {
	backend
	pods []*corev1.Pod
}

func (f *full) Pods() ([]*corev1.Pod, bool) { return f.pods, true }

// BenchmarkPods is a request for the pods of a full node, beside the writing of their JSON alone.
func BenchmarkPods(b *testing.B) {
	f := &full{}
	var list corev1.PodList
	for i := range 110 {
		f.pods = append(f.pods, Pod(fmt.Sprint("pod-", i), Container("server", "httpd:1")))
		list.Items = append(list.Items, *f.pods[i])
	}
	b.Run("baseline=Marshal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := json.Marshal(&list); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("GET", func(b *testing.B) {
		handler := server.New(f)
		b.ReportAllocs()
		for b.Loop() {
			w := httptest.NewRecorder()
			if handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/pods", nil)); w.Code != http.StatusOK {
				b.Fatal(w.Code)
			}
		}
	})
}

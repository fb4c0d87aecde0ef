package apiserver

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
)

// A static pod that is there before the API has told its mirrors is shown when it has, with the status that it has come to.
func TestAStaticPodWaitsForTheList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		var asked []string
		s.answer = func(r *http.Request, body []byte) (int, any) {
			asked = append(asked, r.Method)
			pod := &corev1.Pod{}
			_ = json.Unmarshal(body, pod)
			pod.APIVersion, pod.Kind, pod.Name, pod.Namespace, pod.UID = "v1", "Pod", "p", "x", "mirror"
			return http.StatusOK, pod
		}
		client := s.client(t)
		owner := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "node"}}
		m := NewMirrors(client, NewStatusSink(client), func() *corev1.Node { return owner })
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		source := podmilltest.NewPodSource("file")
		go func() { _ = m.Follow(source).Run(ctx, func(podmill.PodUpdate) {}) }()
		go func() { _ = m.Run(ctx) }()
		pod := podmilltest.Pod("x/p", podmilltest.Annotation(podmill.AnnotationConfigSource, "file"), podmilltest.Annotation(podmill.AnnotationConfigHash, "h"))
		source.Replace(pod)
		if err := m.UpdateStatus(ctx, pod, &corev1.PodStatus{Phase: corev1.PodRunning}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		s.set(func() {
			if len(asked) != 0 {
				t.Errorf("asked %v before the mirrors are known", asked)
			}
		})
		m.set(nil)
		time.Sleep(time.Second)
		s.set(func() {
			if len(asked) != 2 || asked[0] != http.MethodPost || asked[1] != http.MethodPatch {
				t.Errorf("asked %v, want a mirror and its status", asked)
			}
		})
	})
}

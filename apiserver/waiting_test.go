package apiserver

import (
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/podmill/podmill/podmilltest"
)

// While a status waits to be written, as when the server was away, an older one is not written over what the server shows.
func TestAStatusThatWaitsIsNotOvertakenByAnOlderOne(t *testing.T) {
	s := newServer()
	fails := true
	s.answer = func(*http.Request, []byte) (int, any) {
		if fails {
			return http.StatusInternalServerError, apierrors.NewInternalError(http.ErrAbortHandler).Status()
		}
		return http.StatusOK, map[string]any{"kind": "Pod", "apiVersion": "v1", "metadata": map[string]string{"resourceVersion": "9"}}
	}
	pod := podmilltest.Pod("x/p", podmilltest.Container("c", "i"))
	pod.ResourceVersion, pod.Status = "1", corev1.PodStatus{Phase: corev1.PodPending}
	sink := NewStatusSink(s.client(t))
	if err := sink.UpdateStatus(t.Context(), pod, &corev1.PodStatus{Phase: corev1.PodRunning}); err == nil {
		t.Fatal("a server that fails has taken a status")
	}
	shown := pod.DeepCopy()
	shown.ResourceVersion, shown.Status = "5", corev1.PodStatus{Phase: corev1.PodFailed}
	if sink.saw(shown); len(sink.takeDoubts()) > 0 {
		t.Error("what was known before would be written once more")
	}
	fails = false
	if err := sink.UpdateStatus(t.Context(), pod, &corev1.PodStatus{Phase: corev1.PodRunning}); err != nil {
		t.Fatal(err)
	}
	shown.ResourceVersion = "10"
	if sink.saw(shown); len(sink.takeDoubts()) != 1 {
		t.Error("what somebody else has written over it is not seen")
	}
}

package apiserver

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/testenv/apifault"
	"github.com/podmill/podmill/internal/testenv/memapi"
	"github.com/podmill/podmill/podmilltest"
)

// A status that the server has taken, and whose answer is lost, is not somebody else's: the one before it is not restored over it.
func TestAWriteWhoseAnswerIsLostIsNotUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New("n")
		way := apifault.New(server)
		client, err := NewClient(&rest.Config{Host: "http://server", Transport: way, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, "n")
		if err != nil {
			t.Fatal(err)
		}
		sink := NewStatusSink(client)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- NewPodSource(client, WithStatuses(sink)).Run(ctx, func(podmill.PodUpdate) {}) }()
		pod := server.CreatePod(podmilltest.Pod("x/p", podmilltest.Container("c", "i")))
		if err := sink.UpdateStatus(ctx, pod, &corev1.PodStatus{Phase: corev1.PodRunning}); err != nil {
			t.Fatal(err)
		}
		way.Add(apifault.Fault{On: apifault.Request{Verb: "patch", Resource: "pods", Subresource: "status"}, Times: 1, Effect: apifault.Lose()})
		if err := sink.UpdateStatus(ctx, pod, &corev1.PodStatus{Phase: corev1.PodSucceeded}); err == nil {
			t.Fatal("the answer was not lost")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if phase := server.Pod("x", "p").Status.Phase; phase != corev1.PodSucceeded {
			t.Errorf("the pod was Succeeded, and has become %s", phase)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

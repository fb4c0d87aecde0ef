package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
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

// dropping is a server that does not know a field of a status, as an older one may not.
func dropping(field string, server http.RoundTripper) apifault.Effect {
	return func(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
		var change map[string]any
		if err := json.NewDecoder(r.Body).Decode(&change); err != nil {
			return nil, err
		}
		part, _ := change["status"].(map[string]any)
		delete(part, field)
		data, err := json.Marshal(change)
		if err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
		return server.RoundTrip(r)
	}
}

// A server that leaves out a field that it does not know is not somebody who writes over the status: it is told once. What somebody does write over it is restored.
func TestAServerThatDropsAField(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New("n")
		way := apifault.New(server)
		writes := apifault.Request{Verb: "patch", Resource: "pods", Subresource: "status"}
		way.Add(apifault.Fault{On: writes, Effect: dropping("observedGeneration", server)})
		client, err := NewClient(&rest.Config{Host: "http://server", Transport: way, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, "n")
		if err != nil {
			t.Fatal(err)
		}
		sink := NewStatusSink(client)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- NewPodSource(client, WithStatuses(sink)).Run(ctx, func(podmill.PodUpdate) {}) }()
		pod := server.CreatePod(podmilltest.Pod("x/p", podmilltest.Container("c", "i")))
		status := &corev1.PodStatus{Phase: corev1.PodRunning, ObservedGeneration: 3}
		want := func(what string, most int, change func(*corev1.Pod)) {
			t.Helper()
			way.Take()
			for range 5 {
				server.Change("pods", "x", "p", func(o memapi.Object) { change(o.(*corev1.Pod)) })
				if err := sink.UpdateStatus(ctx, pod, status); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
			}
			n := 0
			for _, r := range way.Take() {
				if r.Is(writes) {
					n++
				}
			}
			if n != most || server.Pod("x", "p").Status.Phase != corev1.PodRunning {
				t.Errorf("%s: %d writes, want %d; the status is %+v", what, n, most, server.Pod("x", "p").Status)
			}
		}
		label := func(p *corev1.Pod) { p.Labels = map[string]string{"at": time.Now().String()} }
		want("somebody labels the pod five times", 1, label)
		want("and again", 0, label)
		want("somebody writes over it five times", 5, func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending })
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// Conditions that come and go are gone when a status does not have them any more.
func TestConditionsOfAResizeGo(t *testing.T) {
	server := memapi.New("n")
	client, err := NewClient(&rest.Config{Host: "http://server", Transport: server, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, "n")
	if err != nil {
		t.Fatal(err)
	}
	sink := NewStatusSink(client)
	pod := server.CreatePod(podmilltest.Pod("x/p", podmilltest.Container("c", "i")))
	for _, kinds := range [][]corev1.PodConditionType{
		{}, {corev1.PodResizePending, corev1.PodReady}, {corev1.PodResizeInProgress, corev1.PodReady}, {corev1.PodReady},
	} {
		status := &corev1.PodStatus{Phase: corev1.PodRunning}
		for _, kind := range kinds {
			status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue})
		}
		if err := sink.UpdateStatus(t.Context(), pod, status); err != nil {
			t.Fatal(err)
		}
		shown := server.Pod("x", "p").Status.Conditions
		if !slices.EqualFunc(shown, kinds, func(c corev1.PodCondition, kind corev1.PodConditionType) bool { return c.Type == kind }) {
			t.Errorf("the API has the conditions %+v, want %v", shown, kinds)
		}
	}
}
